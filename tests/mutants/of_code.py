"""Mutants of the code: the table, the POST, what is read out of replies, and what waits for commits."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        broken="a lease that ends in dispatching leads to doubt",
        path="core/machine.py",
        old='Rule(Phase.DISPATCHING, Kind.LEASE_ENDED, Phase.UNCERTAIN, "became_uncertain", do.doubt)',
        new='Rule(Phase.DISPATCHING, Kind.LEASE_ENDED, Phase.PREPARED, "became_uncertain", do.doubt)',
        killers=(
            "tests/core/test_machine.py::test_every_event_in_every_phase_leads_where_the_design_says_or_is_refused",
        ),
    ),
    Mutant(
        broken="nothing is proven absent before it is quiescent",
        path="core/machine.py",
        old='    Rule(Phase.UNCERTAIN, Kind.PROVE_ABSENT, None, "too_early", Refused.NOT_QUIESCENT, early),\n',
        new="",
        killers=("tests/core/test_decisions.py",),
    ),
    Mutant(
        broken="a final state refuses what contradicts it",
        path="core/machine.py",
        old="    return operation.is_final and event.render_state is not operation.render_state and not failed_for_us\n",
        new="    return False\n",
        killers=(
            "tests/core/test_machine.py::test_only_the_word_that_brought_no_output_may_go_on_standing_beside_a_failure",
        ),
    ),
    Mutant(
        broken="a sweep by whoever lost the lease decides nothing",
        path="workers/reconcile.py",
        old=(
            '    if not await desk.still_holds(work.message):\n        desk.tally.stale["lease"] += 1\n        return\n'
        ),
        new="",
        killers=(
            "tests/faults/test_halts.py::test_a_worker_that_slept_beyond_its_lease_spends_nothing_and_overwrites_nothing[0]",
        ),
    ),
    Mutant(
        broken="an unseen mark is never followed by a POST",
        path="workers/dispatch.py",
        old=("        if not saved.applied:\n            await self._after_refused_mark"),
        new=(
            "        if not saved.applied and saved.status is not Status.UNKNOWN:\n"
            "            await self._after_refused_mark"
        ),
        killers=(
            "tests/faults/test_unknown_marks.py::test_a_mark_cut_at_any_share_of_request_or_reply_is_not_followed_by_a_post",
        ),
    ),
    Mutant(
        broken="a mark that a standby may not have counts as unseen",
        path="store/db.py",
        old="        if self._warned:\n",
        new="        if False:\n",
        killers=("tests/faults/test_unknown_marks.py::test_a_mark_that_no_standby_confirmed_is_taken_back",),
    ),
    Mutant(
        broken="no first byte leaves after the send window",
        path="provider/wire.py",
        old=(
            "        if not self._progress.bytes_sent and now >= self._until:\n"
            '            raise _EndedError("send_window_passed")\n'
        ),
        new="",
        killers=(
            "tests/provider/test_wire_sending.py::test_a_process_that_slept_past_the_window_while_connecting_sends_nothing",
        ),
    ),
    Mutant(
        broken="a POST that broke is not sent again",
        path="provider/wire.py",
        old=(
            "    try:\n"
            "        await _course(request, window=window, progress=progress, tls=tls, seams=seams)\n"
            "    except (_EndedError, NotConnectedError) as end:\n"
            "        progress.failed(str(end))\n"
        ),
        new=(
            "    try:\n"
            "        try:\n"
            "            await _course(request, window=window, progress=progress, tls=tls, seams=seams)\n"
            "        except _EndedError:\n"
            "            await _course(request, window=window, progress=progress, tls=tls, seams=seams)\n"
            "    except (_EndedError, NotConnectedError) as end:\n"
            "        progress.failed(str(end))\n"
        ),
        killers=(
            "tests/faults/test_cut_replies.py::test_every_operation_is_uncertain_unless_the_whole_reply_arrived[rst]",
        ),
    ),
    Mutant(
        broken="a reply that was cut proves nothing",
        path="core/classify.py",
        old="    if exchange.status is None or not exchange.complete:\n",
        new="    if exchange.status is None:\n",
        killers=(
            "tests/core/test_classify.py::test_a_reply_that_did_not_arrive_whole_is_doubt_whatever_its_status_says",
        ),
    ),
    Mutant(
        broken="a 503 proves nothing",
        path="core/classify.py",
        old="        501: Verdict.REJECTED,\n",
        new=("        501: Verdict.REJECTED,\n        503: Verdict.THROTTLED,\n"),
        killers=("tests/core/test_classify.py::test_every_status_without_an_id_means_what_the_list_says",),
    ),
    Mutant(
        broken="an id on a failure is kept",
        path="core/classify.py",
        old=("    if remote_job_id is not None:\n        return FailedWithId("),
        new=("    if False:\n        return FailedWithId("),
        killers=("tests/core/test_classify.py::test_any_failure_that_names_its_job_is_saved_whatever_its_status",),
    ),
    Mutant(
        broken="the text that was approved is the text that is sent",
        path="workers/dispatch.py",
        old="        if hashlib.sha256(body).hexdigest() == work.operation.specification_hash:\n",
        new="        if True:\n",
        killers=("tests/operating/test_messages.py::test_what_is_still_broken_is_set_aside_again",),
    ),
    Mutant(
        broken="a cancelled save is written all the same",
        path="store/committer.py",
        old="await self._write(self._lanes[kind], [each for each in batch if not each.is_settled])\n",
        new="await self._write(self._lanes[kind], [each for each in batch if not each.answer.done()])\n",
        killers=("tests/store/test_committer.py::test_the_item_of_a_cancelled_caller_is_written_all_the_same",),
    ),
    Mutant(
        broken="a batch whose commit was not seen is looked for before it is written again",
        path="store/committer.py",
        old="        ask = lane.resolve if in_doubt and lane.resolve is not None else lane.write\n",
        new="        ask = lane.write\n",
        killers=(
            "tests/store/test_committer.py::test_what_is_found_of_a_batch_in_doubt_is_answered_and_only_the_rest_is_written_again",
        ),
    ),
    Mutant(
        broken="a reply waits on the disk while the database is away",
        path="workers/conclusion.py",
        old="    if desk.spooling is None:\n",
        new="    if True:\n",
        killers=(
            "tests/faults/test_spool.py::test_the_database_is_away_for_half_a_minute_after_the_reply_and_the_id_is_saved",
        ),
    ),
    Mutant(
        broken="processes whose parent was killed drain and end",
        path="cli/obeying.py",
        old="        self._obey(order or Order.DRAIN)\n",
        new="        if order is not None:\n            self._obey(order)\n",
        killers=("tests/cli/test_processes.py::test_when_the_parent_is_killed_its_processes_drain_and_end",),
    ),
    Mutant(
        broken="a terminal's interrupt is the parent's alone to count",
        path="cli/obeying.py",
        old="        for each in (signal.SIGINT, signal.SIGHUP):\n            signal.signal(each, signal.SIG_IGN)\n",
        new="        self._loop.add_signal_handler(signal.SIGINT, self._obey, Order.STOP)\n",
        killers=(
            "tests/cli/test_processes.py::test_an_interrupt_from_a_terminal_is_counted_once_and_sigterm_however_often_only_drains",
        ),
    ),
    Mutant(
        broken="a process is begun with signals held back",
        path="cli/child.py",
        old="            with _held_back():\n",
        new="            if True:\n",
        killers=("tests/cli/test_kept.py::test_processes_hear_no_signal_before_they_listen",),
    ),
    Mutant(
        broken="a process that dies again and again is given up",
        path="cli/restarts.py",
        old="        return None if recent_count >= ENDS else ",
        new="        return ",
        killers=(
            "tests/cli/test_restarts.py::test_deaths_in_a_row_are_waited_for_longer_each_time_until_it_is_given_up",
        ),
    ),
)

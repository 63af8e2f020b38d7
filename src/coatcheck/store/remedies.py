"""What the person on call does about each kind of finding: one sentence, with a command that exists.

No remedy sends anything again: what may have been paid is counted at the service first.
"""

_LEDGER = "`coatcheck providers pause` the account, then count the POSTs of this operation in the service's own ledger"
_STORY = "read `coatcheck operations show` and the server's log for who wrote past the statements of coatcheck"
_GONE = "restore the operation's row from a backup, or delete what is left of it once nobody can ask for it any more"
_COURSE = "restore the lane as `coatcheck operations show` has it for a sound operation in this phase"

REMEDIES = {
    "wall_missing": "`coatcheck providers pause` every account, restore it from the migration that made it (`sql/migrations`), and audit again",
    # S1
    "mark_missing": f"{_LEDGER}: what sent without a mark is no worker of this version",
    "marked_twice": f"{_LEDGER}: each mark allows a POST",
    "instants_disordered": "check whether the database's clock went back, and wait for the later instant before any decision on this operation",
    "dispatch_missing": f"{_LEDGER}, as one of its dispatches is lost; a reply that is still to come writes it again",
    "dispatch_without_operation": f"{_LEDGER}, and restore the operation's row from a backup",
    # S2
    "spent_twice": f"{_LEDGER}, and claim back what was paid twice",
    "displaced": "settle with the service what it made, then `coatcheck orphans resolve` its job, or `coatcheck reconcile note` what was found where there is none",
    "unauthorised": f"{_LEDGER}: nobody allowed this dispatch",
    "authorisation_unexplained": f"`coatcheck providers pause` the account if it is prepared, and {_STORY}",
    # S3
    "left_dispatching": f"{_LEDGER}: it left dispatching without a reply, so a POST may be unaccounted for",
    "left_uncertain": f"{_LEDGER}: its doubt was ended by nobody who may",
    "lease_end_unseen": "`coatcheck messages resume` the lane if it is parked, else aim it at reconcile, so that the doubt is listed",
    "open_left_behind": f"{_LEDGER}: the end of this dispatch was never saved",
    # S4
    "accepted_twice": "compare both jobs in the service's ledger; the one that the operation does not name is paid and delivered to nobody",
    "remote_id_lost": "find the id in `coatcheck operations show` and the service's ledger: a paid job is looked at by nobody",
    "remote_id_unexplained": f"check in the service's ledger that the job is this operation's, and {_STORY}",
    "lane_of_another_job": "check in the service's ledger which job is this operation's before the lane's next look",
    "snapshot_of_another_job": "check in the service's ledger whose outputs these are before they are handed out",
    # S5
    "job_disputed": "ask the service which of the two operations' requests made the job before anything of it is delivered, then `coatcheck reconcile note` it",
    "owner_missing": "check in the service's ledger that the job is this operation's, then write its owner's row again",
    "owned_by_another": "check in the service's ledger whose job it is: of two operations that name it, one shows the other's outputs",
    "owner_differs": "check in the service's ledger whose job it is, and correct the row that is wrong",
    "owner_without_operation": f"{_GONE}; its job is paid",
    # S6
    "final_replaced": f"check the render in the service's ledger, and {_STORY}",
    "delivery_undone": f"check that the object still lies in the sink, and {_STORY}",
    # S7
    "revision_missing": f"restore the history of this operation from a backup, and {_STORY}",
    "history_broken": f"compare this operation with a backup, and {_STORY}",
    "record_differs": f"believe the history, compare it with the service's ledger, and {_STORY}",
    "history_without_operation": _GONE,
    # S8
    "transaction_open": "end the session with pg_terminate_backend, and report what it was doing: no transaction of coatcheck waits for anything",
    # S9
    "dispatching_without_mark": f"{_LEDGER}: only a mark of a prepared operation leads to a POST",
    "marked_by_another_action": f"{_LEDGER}: only a message to dispatch leads to a POST",
    "marked_by_another_role": f"{_LEDGER}, and replace that worker: it marked without the role to dispatch",
    # S10
    "tenant_unnamed": "give the operation its tenant back from a backup: an empty tenant belongs to whoever forgets to name one",
    "key_twice": f"{_LEDGER}: one intent of the tenant was carried out twice",
    "output_elsewhere": "check before anybody is shown the output that it is this tenant's, and move the object to its folder",
    # S11
    "amount_negative": f"correct the amount after the service's ledger, and {_STORY}",
    "charge_for_nothing": "check in the service's ledger that nothing was charged, and correct the dispatch and the tenant's allowance together",
    "hold_forgotten": "look in the service's ledger for what it cost, and settle the dispatch and the tenant's allowance together",
    "allowance_differs": "believe the dispatches (`coatcheck charges report`), and correct the allowance in a transaction that locks its row",
    "flights_differ": "`coatcheck providers set NAME --max-in-flight N` a provider of the account to the limit that it has: that counts anew",
    # S12
    "course_missing": f"{_COURSE}: without it nobody looks after this operation",
    "course_misaimed": f"{_COURSE}: what it is aimed at is refused, over and over",
    "lane_of_closed": "delete the lane: the operation is closed and nothing is left to do",
    "lane_elsewhere": f"{_COURSE}: workers of another provider or account would take it",
    "lane_without_operation": _GONE,
    "output_lane_missing": "`coatcheck operations redeliver` the operation",
    "lane_without_output": "delete the lane: there is no output that it could deliver",
    "outputs_miscounted": f"believe the outputs and the sink, correct the counters, and {_STORY}",
    "output_without_operation": _GONE,
    "snapshot_without_operation": _GONE,
    "specification_missing": "restore the specification from a backup; if it is prepared, `coatcheck operations cancel` it until then",
    "specification_differs": "restore the specification from a backup: what was asked is no longer what was hashed, and no dispatch sends it",
    "specification_without_operation": _GONE,
}

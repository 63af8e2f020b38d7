"""Every end that a POST may have, as a reply, and what it leaves of a dispatch that is under way."""

from coatcheck.core import events as ev
from coatcheck.core.operation import DispatchId, RemoteJobId

JOB = RemoteJobId("job-1")


def accepted(dispatch_id: DispatchId, job: RemoteJobId = JOB) -> ev.Accepted:
    return ev.Accepted(dispatch_id=dispatch_id, remote_job_id=job)


def replies(dispatch_id: DispatchId) -> dict[str, ev.Reply]:
    return {
        "accepted": accepted(dispatch_id),
        "submission_failed": ev.FailedWithId(dispatch_id=dispatch_id, remote_job_id=JOB),
        "rejected": ev.Rejected(dispatch_id=dispatch_id, status=422),
        "throttled": ev.Throttled(dispatch_id=dispatch_id, retry_after_s=3, delay_s=3),
        "not_sent": ev.NotSent(dispatch_id=dispatch_id, cause="refused", delay_s=3),
        "uncertain": ev.Doubted(dispatch_id=dispatch_id, cause="no_reply"),
    }


ENDS = {
    "accepted": ("accepted", "observe", None),
    "submission_failed": ("submission_failed", "observe", None),
    "rejected": ("rejected", None, None),
    "throttled": ("prepared", "dispatch", None),
    "not_sent": ("prepared", "dispatch", None),
    "uncertain": ("uncertain", "reconcile", "uncertain"),
}
"""By outcome: the phase, what is due next, and why it is set aside."""

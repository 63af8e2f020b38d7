"""What a worker may be told to do; known without loading what does it."""

from coatcheck.core.actions import Action

ROLES = (Action.DISPATCH, Action.OBSERVE, Action.DELIVER, Action.RECONCILE)

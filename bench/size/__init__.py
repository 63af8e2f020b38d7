"""What a store of millions of operations costs whoever claims, lists, audits and retires."""

"""Commands that print figures and assert nothing: what a lifecycle costs, where its time goes."""

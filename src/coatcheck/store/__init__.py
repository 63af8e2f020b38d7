"""Guarded writes and typed reads: with `queue`, the only place that speaks SQL."""

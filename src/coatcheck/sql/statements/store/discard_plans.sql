-- purpose: this session plans anew, for tables as they are now, what it has prepared
-- guard: none: it changes no setting and no statement, so also whoever is lent the session only plans once more
-- index: none: no table is read
discard plans

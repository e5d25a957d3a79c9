"""The diagnosis of an object that is not as it should be: facts in, findings out, the cause first.

    scene      the objects, events and gaps that were found
    links      the other objects that an object leads to
    walk       from one object along the links; the next objects to read
    verdict    the state of one object
    sayings    every statement of a problem by the objects on the way
    rules.toml every cause: texts, reason codes, sentences of foreign programs; `table` reads it, `reported` matches it
    looks of   objects, boots, disks, hosts, guests, operations, fronts: functions that find what nobody reports
    explain    the answer: a state, findings by rank, and the objects that could not be read

Pure: the caller has a client and reads what `walk.asks` wants until it wants nothing more.
"""

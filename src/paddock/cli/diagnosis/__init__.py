"""Why an object is not what it should be: facts in, findings out, the cause first.

    scene      the objects, events and gaps that were found
    links      which other objects an object leads to
    walk       from one object along the links; what has to be asked for next
    verdict    whether one object is as it should be
    sayings    everything that the objects on the way say is wrong
    rules of   images, boots, disks, hosts, machines, networks, operations, fronts: one table each; `table` is all of them
    explain    the answer: a state, findings by rank, what could not be looked at

Pure: whoever has a client gathers what `walk.asks` wants until nothing is left to ask for.
"""

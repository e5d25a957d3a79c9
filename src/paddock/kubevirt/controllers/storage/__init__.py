"""Claims and what fills them: PersistentVolumeClaims, DataVolumes, DataSources, DataImportCrons, and what says how (CDI's settings).

A family, because all of them look at the same transfers: `transfers` runs them, `filling` says what each does, `claims` starts them,
and `datavolumes` tells about them.
"""

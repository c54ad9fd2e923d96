from support.surroundings import (  # noqa: F401 - fixtures
    _clean_surroundings,
    _warm_cache,
    openb_folder,
    runner,
    small_trace,
)

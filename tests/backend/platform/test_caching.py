from backend.platform.caching import CacheKind, Caches


def test_cache_keeps_what_was_used_last_up_to_its_size() -> None:
    words = CacheKind[int, str](10, len)
    cache = Caches()[words]
    cache.put({1: "four", 2: "fives", 3: "much too long"})
    assert cache.known([1, 2, 3]) == {1: "four", 2: "fives"}
    cache.known([1])
    cache.put({4: "fours"})
    assert cache.known([1, 2, 4]) == {1: "four", 4: "fours"}

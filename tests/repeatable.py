"""Settings for tests of random examples."""

from hypothesis import HealthCheck, settings


def repeatable(examples: int) -> settings:
    """The same examples every time, whatever the machine."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )

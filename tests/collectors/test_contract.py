"""Requirements of every collector that need no recording."""

import pytest

from traceviz.collectors.base import Collector
from traceviz.collectors.registry import COLLECTORS, state_of
from traceviz.core.errors import TracevizWarning
from traceviz.testing import CollectorContract


class TestEveryCollector(CollectorContract):
    @pytest.fixture(params=COLLECTORS.all(), ids=lambda collector: collector.name, autouse=True)
    def _collector(self, request):
        self.collector = request.param


class Failing(Collector):
    name, title = "failing", "of a plugin"

    def availability(self):
        return {}["version"]


def test_a_collector_of_a_plugin_that_fails_cannot_record_and_warns_once():
    with pytest.warns(TracevizWarning, match="collector 'failing' in availability") as caught:
        state = state_of(Failing())
    assert (state.state, len(caught)) == ("unsupported", 1)

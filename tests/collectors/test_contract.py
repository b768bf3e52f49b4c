"""What every collector must keep, without recording anything."""

import pytest

from traceviz.collectors.registry import COLLECTORS
from traceviz.testing import CollectorContract


class TestEveryCollector(CollectorContract):
    @pytest.fixture(params=COLLECTORS.all(), ids=lambda collector: collector.name, autouse=True)
    def _collector(self, request):
        self.collector = request.param

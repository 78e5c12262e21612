"""Claims: one worker at a time per row, whatever is delivered twice (RW-049)."""

import threading
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from jobs.models import PoolQueue
from portal import lease
from portal.models import Lease
from tests.integration.jobs.test_submission import in_parallel

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def queue() -> PoolQueue:
    """The queue row of a pool."""
    call_command("demo", verbosity=0)
    found = PoolQueue.objects.select_related("pool").first()
    assert found is not None
    return found


def test_of_eight_that_claim_at_once_one_gets_the_row(queue: PoolQueue) -> None:
    tokens = in_parallel(lambda _: PoolQueue.claim(queue.pk, now=timezone.now()))
    assert sum(token is not None for token in tokens) == 1


def test_a_claim_that_expired_is_taken_over_and_its_late_results_are_dropped(queue: PoolQueue) -> None:
    now = timezone.now()
    late = PoolQueue.claim(queue.pk, now=now)
    assert late is not None
    after = now + timedelta(minutes=5)
    successor = PoolQueue.claim(queue.pk, now=after)
    assert successor is not None
    assert not PoolQueue.settle(queue.pk, late, observed_generation=99)
    queue.refresh_from_db()
    assert queue.claim_token == successor
    assert PoolQueue.settle(queue.pk, successor, observed_generation=queue.generation)
    assert PoolQueue.objects.filter(
        pk=queue.pk, claim_token=None, observed_generation=queue.generation
    ).exists()


def test_what_is_touched_while_it_is_worked_on_is_looked_at_again(queue: PoolQueue) -> None:
    now = timezone.now()
    token = PoolQueue.claim(queue.pk, now=now)
    assert token is not None
    queue.refresh_from_db()
    PoolQueue.touch(queue.pk)
    assert not PoolQueue.settle(queue.pk, token, observed_generation=queue.generation)
    assert queue.pk in PoolQueue.due(now, 100)


def test_an_error_is_stored_and_pushes_the_row_into_the_future(queue: PoolQueue) -> None:
    now = timezone.now()
    pauses = []
    for _ in range(3):
        token = PoolQueue.claim(queue.pk, now=now)
        assert token is not None
        PoolQueue.fail(queue.pk, token, error="the cluster does not answer", now=now)
        queue.refresh_from_db()
        assert queue.reconcile_after is not None
        pauses.append((queue.reconcile_after - now).total_seconds())
    assert pauses == [1, 2, 4]
    assert queue.last_error == "the cluster does not answer"
    assert queue.pk not in PoolQueue.due(now, 100)
    assert queue.pk in PoolQueue.due(now + timedelta(seconds=5), 100)


def test_a_lease_has_one_holder_and_its_epoch_grows_with_each_new_one() -> None:
    barrier = threading.Barrier(6)

    def take(number: int) -> int | None:
        barrier.wait()
        return lease.take("observe", f"holder-{number}", now=timezone.now(), seconds=15)

    assert sum(epoch is not None for epoch in in_parallel(take, count=6)) == 1
    later = timezone.now() + timedelta(seconds=60)
    before = Lease.objects.get(name="observe").epoch
    assert lease.take("observe", "successor", now=later, seconds=15) == before + 1

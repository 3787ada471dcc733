"""Reviews are remembered for a short time, within a bound."""

from api.access.reviews import MOST_ANSWERS, NO_SECONDS, YES_SECONDS, Reviews, Verdict


class Cluster:
    """A cluster with one user, who may read some paths; it counts the questions."""

    def __init__(self) -> None:
        self.paths = {"/metrics"}
        self.tokens = {"known"}
        self.token_reviews = 0
        self.access_reviews = 0

    def user_of(self, token: str) -> str | None:
        """The token is its user's name."""
        self.token_reviews += 1
        return token if token in self.tokens else None

    def may(self, user: str, verb: str, path: str) -> bool:
        """True for the paths."""
        del user, verb
        self.access_reviews += 1
        return path in self.paths


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        """Return its seconds."""
        return self.seconds


def test_a_yes_is_asked_once_a_minute_and_a_right_ends_with_it() -> None:
    """Prometheus scrapes often; a right that was withdrawn holds for no more than those seconds."""
    cluster, clock = Cluster(), Clock()
    reviews = Reviews(cluster, clock=clock)
    for _ in range(4):
        assert reviews.verdict("known", "get", "/metrics") is Verdict.ALLOWED
    assert (cluster.token_reviews, cluster.access_reviews) == (1, 1)
    assert reviews.verdict("known", "get", "/") is Verdict.DENIED
    assert reviews.verdict("known", "post", "/metrics") is Verdict.ALLOWED
    assert (cluster.token_reviews, cluster.access_reviews) == (1, 3)
    cluster.tokens.clear()
    clock.seconds = YES_SECONDS - 1
    assert reviews.verdict("known", "get", "/metrics") is Verdict.ALLOWED
    clock.seconds = YES_SECONDS
    assert reviews.verdict("known", "get", "/metrics") is Verdict.UNKNOWN


def test_a_no_is_asked_again_sooner() -> None:
    """A role that was forgotten is granted, and a token that was too new is known, within seconds."""
    cluster, clock = Cluster(), Clock()
    reviews = Reviews(cluster, clock=clock)
    for _ in range(3):
        assert reviews.verdict("known", "get", "/") is Verdict.DENIED
        assert reviews.verdict("stranger", "get", "/") is Verdict.UNKNOWN
    assert (cluster.token_reviews, cluster.access_reviews) == (2, 1)
    cluster.paths.add("/")
    cluster.tokens.add("stranger")
    clock.seconds = NO_SECONDS
    assert reviews.verdict("known", "get", "/") is Verdict.ALLOWED
    assert reviews.verdict("stranger", "get", "/") is Verdict.ALLOWED


def test_a_flood_of_tokens_displaces_no_known_one_and_stays_within_the_bound() -> None:
    """Thousands of made-up tokens are forgotten, oldest first; the user who is known is not asked for again."""
    cluster, clock = Cluster(), Clock()
    reviews = Reviews(cluster, clock=clock)
    assert reviews.verdict("known", "get", "/metrics") is Verdict.ALLOWED
    for number in range(MOST_ANSWERS + 5):
        assert reviews.verdict(f"made-up-{number}", "get", "/metrics") is Verdict.UNKNOWN
    asked = cluster.token_reviews
    assert reviews.verdict("known", "get", "/metrics") is Verdict.ALLOWED
    assert cluster.token_reviews == asked
    assert len(reviews._strangers._answers) == MOST_ANSWERS

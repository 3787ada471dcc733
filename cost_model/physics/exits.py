"""The ways in which a removed replica leaves: gracefully, ungracefully, or killed in the middle of its work."""

from cost_model.physics.profile import GroupProfile
from forecasting.units import Fraction, Seconds


def leaves_gracefully(profile: GroupProfile) -> bool:
    """True if a stopped replica can finish its batch and commit before Kubernetes kills it."""
    return profile.termination_grace_seconds >= profile.batch_p99_seconds


def sends_leave_group(profile: GroupProfile) -> bool:
    """True if a closing consumer sends LeaveGroup: neither static members nor Streams instances do."""
    return not profile.static_membership and profile.streams is None


def ungraceful_fraction(profile: GroupProfile) -> Fraction:
    """The share of exits that the group notices only when the session runs out: as learned, else all or none."""
    if profile.ungraceful_share is not None:
        return profile.ungraceful_share
    return Fraction(0.0 if sends_leave_group(profile) and leaves_gracefully(profile) else 1.0)


def killed_fraction(profile: GroupProfile) -> Fraction:
    """The share of exits that interrupt work: an ungraceful one was a kill, unless the group always closes that way."""
    if sends_leave_group(profile):
        return ungraceful_fraction(profile)
    return Fraction(0.0 if leaves_gracefully(profile) else 1.0)


def heartbeat_seconds(profile: GroupProfile) -> Seconds:
    """The interval of a member's heartbeats: its own setting, or the broker's under KIP-848."""
    if profile.rebalances_as == "kip848":
        return profile.consumer_heartbeat_seconds
    return profile.heartbeat_interval_seconds


def orphaned_seconds(profile: GroupProfile) -> Seconds:
    """Time until an ungraceful leave is noticed.

    A close without LeaveGroup re-arms the session, so all of it passes; measured 12.0 s at a session of 10 s and a
    rebalance of 2 s. A kill comes half a heartbeat after the last one on average.
    """
    if leaves_gracefully(profile) and not sends_leave_group(profile):
        return profile.session_timeout_seconds
    return Seconds(max(0.0, profile.session_timeout_seconds - heartbeat_seconds(profile) / 2.0))

"""`lagcast-executor`, as a process: it ends soon after SIGTERM."""

import subprocess
import sys
import time
from pathlib import Path

# The system may deliver a signal for the process to any of its threads. No API is there: a look ends with an error.
SIGNAL_IN_ANOTHER_THREAD = """
import signal, sys, threading, time
from executor.run import main

def send():
    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        time.sleep(0.05)
    time.sleep(2)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

threading.Thread(target=send).start()
main()
"""
CLUSTER = """
apiVersion: v1
kind: Config
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: nobody, user: {}}]
"""


def test_sigterm_that_another_thread_receives_ends_the_process(tmp_path: Path) -> None:
    """The process ends within seconds, and not after its longest wait."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(CLUSTER)
    options = ["--api", "http://127.0.0.1:9", "--all", "--interval-seconds", "90", "--kubeconfig", str(kubeconfig)]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", SIGNAL_IN_ANOTHER_THREAD, *options],
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"event": "failed"' in done.stderr
    assert time.monotonic() - began < 60

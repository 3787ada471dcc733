"""A real Kubernetes control plane on loopback: etcd, API server, controllers, scheduler, and nodes played by kwok.

Pods run nothing: they become Ready at once, or after the delay in their annotation `test/start-delay` (such as `2s`).
"""

import json
import ssl
import subprocess
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path

import httpx2

from tests.live.harness.broker import free_ports
from tests.live.harness.fetching import ran

_HERE = Path(__file__).parent / "kubernetes"
_START_LIMIT_SECONDS = 180.0
# Autoscalers look every 15 s as they come; a test waits for one look.
_QUICK_AUTOSCALERS = (
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=2s",
)
_ADMIN_TOKEN = "admin-of-a-throw-away-cluster"  # noqa: S105  # opens nothing but what `ControlPlane` starts


class ControlPlaneError(RuntimeError):
    """The control plane could not be built, or did not start; the message ends with the last log lines."""


def built_control_plane() -> Path:
    """The binary that plays every part, built from Kubernetes' Go modules the first time. Errors: ControlPlaneError."""
    built = ran(_HERE / "build.sh")
    if built.returncode:
        message = f"Kubernetes did not come from its Go modules: {built.stderr.strip()[-2000:]}"
        raise ControlPlaneError(message)
    return Path(built.stdout.strip())


class ControlPlane:
    """One cluster of one node; all its files are in `folder`. `kubeconfig` is that of its administrator.

    `certificate` is that of its API server. `controller_flags` are further flags of kube-controller-manager, and
    `server_flags` of kube-apiserver.
    """

    def __init__(
        self,
        binary: Path,
        folder: Path,
        *,
        controller_flags: Sequence[str] = _QUICK_AUTOSCALERS,
        server_flags: Sequence[str] = (),
    ) -> None:
        self._binary, self._folder = binary, folder
        self._controller_flags, self._server_flags = controller_flags, server_flags
        self.certificate = folder / "certificates" / "apiserver.crt"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        etcd_port, api_port = free_ports(2)
        self._etcd_url, self.url = f"http://127.0.0.1:{etcd_port}", f"https://127.0.0.1:{api_port}"
        self._api_port = api_port
        self.kubeconfig = folder / "admin.kubeconfig"

    def start(self) -> None:
        """Start every part and wait until the API server is ready. Errors: ControlPlaneError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._start_etcd()
        self._start_api_server()
        self.kubeconfig_for(_ADMIN_TOKEN).rename(self.kubeconfig)
        given = ["--kubeconfig", str(self.kubeconfig)]
        alone = [*given, "--leader-elect=false", "--secure-port=0"]
        key = self._folder / "service-accounts.key"
        keys = ["--service-account-private-key-file", str(key), "--root-ca-file", str(self.certificate)]
        self._spawn("kube-controller-manager", *alone, *keys, *self._controller_flags)
        self._spawn("kube-scheduler", *alone)
        stages, addresses = str(_HERE / "stages.yaml"), ["--cidr=10.64.0.0/16", "--node-ip=10.63.0.1"]
        # Without a lease, the node and all its pods are taken for lost after 50 s.
        alive = "--node-lease-duration-seconds=40"
        self._spawn("kwok", *given, "--manage-all-nodes=true", alive, "--config", stages, *addresses)
        self.apply((_HERE / "node.yaml").read_text(encoding="utf-8"))

    def restart_api_server(self, *, after: Callable[[], object]) -> None:
        """Kill the API server as a crash would, call `after`, and start it as it was."""
        self._processes["kube-apiserver"].kill()
        self._processes["kube-apiserver"].wait()
        after()
        self._serve_api()

    def stop(self) -> None:
        """End every part. SIGKILL: the data is thrown away, and an API server without its etcd waits for a minute."""
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        self._processes.clear()

    def log_lines(self, part: str) -> list[str]:
        """The lines that a part has logged so far."""
        return self._log(part).read_text(encoding="utf-8").splitlines()

    def kubectl(self, *words: str, given: str | None = None) -> str:
        """The output of kubectl, run as the administrator; `given` is its standard input.

        Errors: ControlPlaneError with its message.
        """
        command = [str(self._binary), "kubectl", "--kubeconfig", str(self.kubeconfig), *words]
        done = subprocess.run(command, input=given, check=False, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise ControlPlaneError(done.stderr.strip())
        return done.stdout

    def may(self, kubeconfig: Path, namespace: str, *words: str) -> bool:
        """True if a kubeconfig's owner has a right, such as "list", "pods": roles hold a moment later."""
        try:
            answer = self.kubectl(f"--kubeconfig={kubeconfig}", "-n", namespace, "auth", "can-i", *words)
        except ControlPlaneError:
            return False
        return answer.strip() == "yes"

    def apply(self, manifest: str) -> str:
        """Let kubectl apply the YAML text `manifest`. Errors: ControlPlaneError with its message."""
        return self.kubectl("apply", "-f", "-", given=manifest)

    def kubeconfig_for(self, token: str) -> Path:
        """A kubeconfig for the owner of `token`."""
        path = self._folder / f"user-{sum(1 for _ in self._folder.glob('*.kubeconfig'))}.kubeconfig"
        entry = "this"
        cluster = {"server": self.url, "certificate-authority": str(self.certificate)}
        context = {"cluster": entry, "user": entry, "namespace": "default"}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": entry,
            "clusters": [{"name": entry, "cluster": cluster}],
            "users": [{"name": entry, "user": {"token": token}}],
            "contexts": [{"name": entry, "context": context}],
        }
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def _start_etcd(self) -> None:
        # Without fsync: nothing of it outlives the test.
        urls = ["--listen-client-urls", self._etcd_url, "--advertise-client-urls", self._etcd_url]
        peers = ["--listen-peer-urls", "http://127.0.0.1:0", "--unsafe-no-fsync"]
        self._spawn("etcd", "--data-dir", str(self._folder / "etcd"), *urls, *peers)
        self._wait_until("etcd", lambda: _answers(f"{self._etcd_url}/health", None))

    def _start_api_server(self) -> None:
        key, tokens = self._folder / "service-accounts.key", self._folder / "tokens.csv"
        make_key = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key)]
        subprocess.run(make_key, check=True, capture_output=True)
        tokens.write_text(f'{_ADMIN_TOKEN},admin,admin,"system:masters"\n', encoding="utf-8")
        self._serve_api()

    def _serve_api(self) -> None:
        key, tokens = self._folder / "service-accounts.key", self._folder / "tokens.csv"
        self._spawn(
            "kube-apiserver",
            *("--etcd-servers", self._etcd_url, "--endpoint-reconciler-type=none"),
            *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={self._api_port}"),
            *("--cert-dir", str(self.certificate.parent), "--service-cluster-ip-range=10.0.0.0/24"),
            *("--token-auth-file", str(tokens), "--authorization-mode=RBAC"),
            *("--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file", str(key)),
            *("--service-account-signing-key-file", str(key)),
            *self._front_proxy(),
            *self._server_flags,
        )
        # The server makes a certificate for itself as it starts.
        self._wait_until(
            "kube-apiserver",
            lambda: self.certificate.exists() and _answers(f"{self.url}/readyz", self.certificate),
        )

    def _front_proxy(self) -> list[str]:
        """Flags by which the API server authenticates to the servers of further APIs, such as those of metrics."""
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        authority = ["-CA", "proxy-ca.crt", "-CAkey", "proxy-ca.key", "-CAcreateserial", "-days", "2"]
        name, made = "front-proxy", ["-keyout", "proxy.key", "-out", "proxy.csr"]
        ca = ["-subj", "/CN=front-proxy-ca", "-days", "2", "-keyout", "proxy-ca.key", "-out", "proxy-ca.crt"]
        for words in (
            ["req", "-x509", *key, *ca],
            ["req", *key, "-subj", f"/CN={name}", *made],
            ["x509", "-req", "-in", "proxy.csr", *authority, "-out", "proxy.crt"],
        ):
            subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self._folder)
        return [
            f"--requestheader-client-ca-file={self._folder / 'proxy-ca.crt'}",
            f"--requestheader-allowed-names={name}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={self._folder / 'proxy.crt'}",
            f"--proxy-client-key-file={self._folder / 'proxy.key'}",
        ]

    def _spawn(self, part: str, *words: str) -> None:
        with self._log(part).open("wb") as output:
            command = [str(self._binary), part, *words]
            self._processes[part] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=self._folder
            )

    def _wait_until(self, part: str, answers: Callable[[], bool]) -> None:
        until = time.monotonic() + _START_LIMIT_SECONDS
        while time.monotonic() < until and self._processes[part].poll() is None:
            if answers():
                return
            time.sleep(0.05)
        log_end = self._log(part).read_text(encoding="utf-8")[-2000:]
        message = f"{part} was not ready within {_START_LIMIT_SECONDS:.0f} s: {log_end}"
        raise ControlPlaneError(message)

    def _log(self, part: str) -> Path:
        return self._folder / f"{part}.log"


def _answers(url: str, certificate: Path | None) -> bool:
    headers = {} if certificate is None else {"Authorization": f"Bearer {_ADMIN_TOKEN}"}
    try:
        # A server that makes its certificate as it starts has it there half-written for a moment: an SSLError.
        context = ssl.create_default_context(cafile=None if certificate is None else str(certificate))
        # urllib leaves the socket open if the handshake takes longer than this: ResourceWarning in some later test.
        return httpx2.get(url, headers=headers, verify=context, timeout=2).status_code == HTTPStatus.OK
    except (OSError, httpx2.HTTPError):
        return False

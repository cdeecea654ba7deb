package parts

import (
	"fmt"
	"path/filepath"
)

func (k *Kube) etcdArgs() []string {
	client := k.etcdURL()
	peer := fmt.Sprintf("https://127.0.0.1:%d", k.ports["etcd_peer"])
	args := []string{
		"--data-dir=" + filepath.Join(k.dir, "etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--log-level=warn",
	}
	// Who can write to etcd is above every access rule of Kubernetes, and the
	// machine may have other users.
	for _, prefix := range []string{"--", "--peer-"} {
		args = append(args,
			prefix+"cert-file="+k.pki.path("server.crt"),
			prefix+"key-file="+k.pki.path("server.key"),
			prefix+"trusted-ca-file="+k.pki.path("ca.crt"),
			prefix+"client-cert-auth",
		)
	}
	if !k.options.Durable {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

func (k *Kube) apiserverArgs() []string {
	return []string{
		"--etcd-servers=" + k.etcdURL(),
		"--etcd-cafile=" + k.pki.path("ca.crt"),
		"--etcd-certfile=" + k.pki.path("etcd-client.crt"),
		"--etcd-keyfile=" + k.pki.path("etcd-client.key"),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", k.ports["apiserver"]),
		// Without nodes nobody connects to the "kubernetes" service, and its
		// endpoint may not be a loopback address.
		"--advertise-address=192.0.2.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--tls-cert-file=" + k.pki.path("server.crt"),
		"--tls-private-key-file=" + k.pki.path("server.key"),
		"--client-ca-file=" + k.pki.path("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + k.pki.path("service-account.key"),
		"--service-account-signing-key-file=" + k.pki.path("service-account.key"),
		"--authorization-mode=RBAC",
		"--profiling=false",
	}
}

func (k *Kube) controllerArgs() []string {
	kubeconfig := filepath.Join(k.dir, "controller.kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", k.ports["controller"]),
		"--service-account-private-key-file=" + k.pki.path("service-account.key"),
		"--root-ca-file=" + k.pki.path("ca.crt"),
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--profiling=false",
	}
}

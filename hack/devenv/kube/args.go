package kube

import (
	"fmt"
	"path/filepath"
)

func (k *ControlPlane) etcdArgs() []string {
	client := k.etcdURL()
	peer := fmt.Sprintf("https://127.0.0.1:%d", k.ports["etcd_peer"])
	args := []string{
		"--data-dir=" + filepath.Join(k.Dir, "etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--log-level=warn",
	}
	// Write access to etcd bypasses every access rule of Kubernetes, and the
	// machine may have other users.
	for _, prefix := range []string{"--", "--peer-"} {
		args = append(args,
			prefix+"cert-file="+k.PKI.Path("server.crt"),
			prefix+"key-file="+k.PKI.Path("server.key"),
			prefix+"trusted-ca-file="+k.PKI.Path("ca.crt"),
			prefix+"client-cert-auth",
		)
	}
	if !k.options.Durable {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

func (k *ControlPlane) apiserverArgs() []string {
	args := []string{
		"--etcd-servers=" + k.etcdURL(),
		"--etcd-cafile=" + k.PKI.Path("ca.crt"),
		"--etcd-certfile=" + k.PKI.Path("etcd-client.crt"),
		"--etcd-keyfile=" + k.PKI.Path("etcd-client.key"),
		"--bind-address=" + k.site.Address,
		fmt.Sprintf("--secure-port=%d", k.ports["apiserver"]),
		"--service-cluster-ip-range=" + k.site.Services,
		"--tls-cert-file=" + k.PKI.Path("server.crt"),
		"--tls-private-key-file=" + k.PKI.Path("server.key"),
		"--client-ca-file=" + k.PKI.Path("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + k.PKI.Path("service-account.key"),
		"--service-account-signing-key-file=" + k.PKI.Path("service-account.key"),
		"--profiling=false",
	}
	if !k.site.hasNode() {
		return append(args,
			"--authorization-mode=RBAC",
			// The "kubernetes" Service is unused, and its endpoint must not be a
			// loopback address.
			"--advertise-address=192.0.2.1",
			"--endpoint-reconciler-type=none",
		)
	}
	return append(args,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--advertise-address="+k.site.Address,
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-certificate-authority="+k.PKI.Path("ca.crt"),
		"--kubelet-client-certificate="+k.PKI.Path("admin.crt"),
		"--kubelet-client-key="+k.PKI.Path("admin.key"),
	)
}

func (k *ControlPlane) controllerArgs() []string {
	args := append(k.clientArgs("controller"),
		"--service-account-private-key-file="+k.PKI.Path("service-account.key"),
		"--root-ca-file="+k.PKI.Path("ca.crt"),
		"--use-service-account-credentials=true",
	)
	if k.site.hasNode() {
		args = append(args, "--allocate-node-cidrs=true", "--cluster-cidr="+k.site.Pods)
	}
	return args
}

func (k *ControlPlane) schedulerArgs() []string {
	return append(k.clientArgs("scheduler"),
		// For the readiness check.
		"--tls-cert-file="+k.PKI.Path("server.crt"),
		"--tls-private-key-file="+k.PKI.Path("server.key"),
	)
}

// clientArgs returns the common arguments of clients of the API server.
func (k *ControlPlane) clientArgs(name string) []string {
	kubeconfig := filepath.Join(k.Dir, name+".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", k.ports[name]),
		"--leader-elect=false",
		"--profiling=false",
	}
}

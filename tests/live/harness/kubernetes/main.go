// A real Kubernetes control plane in one binary, for the tests marked `kubernetes`: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and kubectl as they are released, and kwok, which plays the nodes.
// The first argument names the part; what follows are that part's own flags. go.mod also has Helm and KEDA, which
// helm.sh and ../keda/build.sh build: in one module the libraries of Kubernetes are compiled once, not for each of them.
package main

import (
	"fmt"
	"os"
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() {
	if len(os.Args) < 2 {
		fail("usage: control-plane etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubectl|kwok [flags]")
	}
	// Each part reads os.Args and takes the first word for its own name.
	os.Args = os.Args[1:]
	var command *cobra.Command
	switch os.Args[0] {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	case "kubectl":
		command = kubectl.NewDefaultKubectlCommand()
	case "kwok":
		if newKwok().Execute() != nil {
			os.Exit(1)
		}
		return
	default:
		fail("no part is called " + os.Args[0])
	}
	os.Exit(cli.Run(command))
}

// newKwok does what kwok's own main does: its --config and -v live in a flag set of their own.
func newKwok() *cobra.Command {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := kwoklog.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		fail(err.Error())
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	// Without this, cobra adds a flag "version" beside the one that component-base has put there, and panics.
	command.Version = ""
	command.SetContext(ctx)
	return command
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(2)
}

module lagcast/rollouts

go 1.24

require github.com/argoproj/argo-rollouts v1.8.3

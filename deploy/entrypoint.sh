#!/bin/bash
# Runs a command, or plays the part that Spark on Kubernetes gives a container: `driver` or `executor`.
set -euo pipefail

# A user without a passwd entry (OpenShift picks one at random) gets a name for as long as the process lives.
if ! getent passwd "$(id -u)" >/dev/null; then
    names=$(mktemp -d)
    printf 'lagcast:x:%s:%s::/tmp:/bin/false\n' "$(id -u)" "$(id -g)" | cat /etc/passwd - >"$names/passwd"
    export LD_PRELOAD="libnss_wrapper.so${LD_PRELOAD:+:$LD_PRELOAD}"
    export NSS_WRAPPER_PASSWD="$names/passwd" NSS_WRAPPER_GROUP=/etc/group
fi

# numba reads machine code from a folder only where it can write to it, too. Without a copy it compiles, as without this.
if [ -d /opt/lagcast/loops ] && [ -n "${NUMBA_CACHE_DIR:-}" ] && [ ! -e "$NUMBA_CACHE_DIR" ]; then
    cp -R /opt/lagcast/loops "$NUMBA_CACHE_DIR" || true
fi

case "${1:-}" in
    driver)
        shift
        # Kubernetes has placed this container: here the driver is a client.
        exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
            --conf "spark.driver.bindAddress=${SPARK_DRIVER_BIND_ADDRESS:?set by Spark}" "$@"
        ;;
    executor)
        shift
        # Spark hands over one JVM option a variable: SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, ...
        options=()
        number=0
        while name="SPARK_JAVA_OPT_$number" && [ -n "${!name+set}" ]; do
            options+=("${!name}")
            number=$((number + 1))
        done
        exec "$JAVA_HOME/bin/java" ${options[@]+"${options[@]}"} \
            "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
            -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*" \
            org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
            --driver-url "$SPARK_DRIVER_URL" \
            --executor-id "$SPARK_EXECUTOR_ID" \
            --cores "$SPARK_EXECUTOR_CORES" \
            --app-id "$SPARK_APPLICATION_ID" \
            --hostname "$SPARK_EXECUTOR_POD_IP" \
            --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
            --podName "$SPARK_EXECUTOR_POD_NAME"
        ;;
    *)
        exec "$@"
        ;;
esac

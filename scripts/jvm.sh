#!/usr/bin/env bash
# What the JVM world runs on RocksDB, on RocksDB's own library and on our librocksdbjni.so in its place.
#
#     scripts/jvm.sh setup [PART...]               fetches PARTs, else all: rocksdbjni kafka kafka-4.4 kafka-broker spark flink bench
#     scripts/jvm.sh quick [LIBRARY]               rocksdbjni's two main classes under -Xcheck:jni and a Kafka topology: 90 s at most
#     scripts/jvm.sh suites stock|ours|both [SUITE...]
#                                                  rocksdbjni kafka flink spark-store spark-rocksdb; by name only spark-more, jraft,
#                                                  and rocksdbjni-10, -11: the same tests under newer jars. Each test's result, and
#                                                  those that clients/jvm/not-here-SUITE.txt does not list
#     scripts/jvm.sh class stock|ours CLASS...     classes of rocksdbjni's tests, with their output; no result is kept
#     scripts/jvm.sh jobs stock|ours [JOB...]      kafka flink spark: jobs of ours whose process is killed KILLS times (3), and
#                                                  whose counts must be exact in the end
#     scripts/jvm.sh bench                         JMH, ours beside RocksDB 9.8.4, 10.1.3 and 11.8.1: nanoseconds a key, a quarter of
#                                                  an hour
#     scripts/jvm.sh measure [PROGRAM...]          spark kafka flink: whole programs, ours beside RocksDB's libraries by turns: rates,
#                                                  latencies, memory. KEYS, RECORDS and what else clients/jvm/measure/ reads of the
#                                                  environment make them smaller; VARIANTS chooses some; FIRST=N goes on with round N
#     scripts/jvm.sh demo-spark                    a stateful stream of PySpark's on both libraries, an executor killed
#     scripts/jvm.sh jar FILE                      our library in a jar, to be put before RocksDB's on a class path
#     scripts/jvm.sh why stock|ours SUITE          what its tests fell over, the most frequent first
#     scripts/jvm.sh natives                       writes crates/jni/natives.tsv of each jar of rocksdbjni from 9.0 on: 2 GB are fetched
#     scripts/jvm.sh table                         both libraries' results, side by side
#
# LIBROCKSDBJNI=PATH is our library, without it the release build of the crate jni. RECORD=yes writes the table into
# docs/compat.md. JVM_CACHE=DIR keeps what was fetched, and the results: target/jvm without it. JVM_PATIENCE_S=SECONDS is how long
# a registry may take, 900 without it. ROCKSDB_JAVA_TESTS=DIR is a java/src/test of RocksDB to run in place of the fetched one,
# JRAFT=DIR a checkout of sofa-jraft, where it cannot be cloned.
#
# AGAIN=yes keeps what the last run's suites passed, and runs the rest: for a machine that was too busy.
#
# Ends with 1 where a test differs from what is listed, and with 3 where a part could not be fetched.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cache=$(realpath -m "${JVM_CACHE:-$target/jvm}")
patience_s=${JVM_PATIENCE_S:-900}
results=$cache/results
mkdir -p "$cache" "$results/stock" "$results/ours"
work=$(mktemp -d "${TMPDIR:-/tmp}/jvm.XXXXXX")
trap 'rm -rf "$work"' EXIT

say() { printf '\n== %s  %s\n' "$(date +%T)" "$*"; }

# --- Fetching.

# fetch PART: its class path. Maven's own files lie in the cache too, where they can be removed.
fetch() {
    local pom=$root/clients/jvm/$1/pom.xml
    # By contents: a checkout makes all files new, and another run may be reading what is here. The class path has the
    # cache's own name: where the cache was moved, it is made anew.
    [ -e "$(cut -d : -f 1 "$cache/$1.classpath" 2>/dev/null)" ] && cmp -s "$pom" "$cache/$1.pom" && return
    { command -v mvn && command -v javac; } >/dev/null || ./scripts/setup.sh jvm
    say "Fetching $1"
    if ! timeout --kill-after=5 "$patience_s" mvn -q -B "-Dmaven.repo.local=$cache/repository" -f "$pom" \
        org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath \
        "-Dmdep.outputFile=$work/$1.classpath" >"$work/fetch.log" 2>&1; then
        echo "SKIPPED: $1 cannot be had here: $(grep -m 1 ERROR "$work/fetch.log" | cut -c 1-300)"
        exit 3
    fi
    mv "$work/$1.classpath" "$cache/$1.classpath"
    cp "$pom" "$cache/$1.pom"
}

# rocksdbjni's tests are in no package of Maven's. Debian has RocksDB's sources, whole, as RocksDB's tag has them: java/src is
# the same at v9.8.4, whose library Spark takes, and at v9.10.0, which Debian has.
debian_version=9.10.0
debian_sha256=fdccab16133c9d927a183c2648bcea8d956fb41eb1df2aacaa73eb0b95e43724
fetch_tests() {
    tests=${ROCKSDB_JAVA_TESTS:-$cache/rocksdb-$debian_version/java/src/test}
    [ ! -d "$tests" ] || return 0
    say "Fetching rocksdbjni's tests"
    local file=rocksdb_$debian_version.orig.tar.gz host
    for host in deb.debian.org archive.debian.org; do
        curl -sSf --max-time "$patience_s" -o "$work/$file" "http://$host/debian/pool/main/r/rocksdb/$file" && break
    done
    if ! echo "$debian_sha256  $work/$file" | sha256sum --check --quiet; then
        echo "SKIPPED: rocksdbjni's tests cannot be had here. ROCKSDB_JAVA_TESTS=DIR names those of a checkout."
        exit 3
    fi
    tar -xzf "$work/$file" -C "$work" "rocksdb-$debian_version/java/src/test"
    mv "$work/rocksdb-$debian_version" "$cache/"
}

# JRaft and RheaKV: their tests are in no package of Maven's.
jraft_version=v1.4.0
fetch_jraft() {
    jraft=${JRAFT:-$cache/sofa-jraft}
    [ ! -d "$jraft/jraft-core" ] || return 0
    say "Fetching JRaft"
    GIT_TERMINAL_PROMPT=0 timeout "$patience_s" git clone --quiet --depth 1 --branch "$jraft_version" https://github.com/sofastack/sofa-jraft "$jraft" ||
        { echo "SKIPPED: JRaft cannot be had here. JRAFT=DIR names a checkout of $jraft_version."; exit 3; }
}

# compile PART NAME SOURCE...: into $cache/classes/NAME, where it is not there.
compile() {
    local part=$1 name=$2
    shift 2
    local out=$work/classes/$name sum
    sum=$(cat "$@" "$cache/$part.classpath" | sha256sum)
    [ "$(cat "$cache/classes/$name/.done" 2>/dev/null)" != "$sum" ] || return 0
    mkdir -p "$out" "$cache/classes"
    # JMH's processor writes the loops around what is measured.
    local processor=(-proc:none)
    [ "$name" != bench ] || processor=(-processor org.openjdk.jmh.generators.BenchmarkProcessor)
    javac -nowarn -Xlint:none -encoding UTF-8 "${processor[@]}" -d "$out" -cp "$(class_path "$part")" "$@" 2>"$work/javac.log" ||
        { cat "$work/javac.log" >&2; exit 1; }
    echo "$sum" >"$out/.done"
    rm -rf "$cache/classes/$name"
    mv "$out" "$cache/classes/"
}

# rocksdbjni_jar VERSION: sets $jar, fetches it where it is not there.
rocksdbjni_jar() {
    jar=$cache/repository/org/rocksdb/rocksdbjni/$1/rocksdbjni-$1.jar
    [ -e "$jar" ] || fetch_jar "org.rocksdb:rocksdbjni:$1"
}

fetch_jar() {
    timeout "$patience_s" mvn -q -B "-Dmaven.repo.local=$cache/repository" \
        org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get "-Dartifact=$1" -Dtransitive=false
}

class_path() { cat "$cache/$1.classpath"; }

# prepare PART: fetches and compiles.
prepare() {
    local runner=$root/clients/jvm/runner
    fetch "$1"
    case $1 in
        rocksdbjni)
            fetch_tests
            compile rocksdbjni runner-rocksdbjni "$runner"/{JUnitRunner,Results,Library}.java
            find "$tests" -name '*.java' >"$work/sources"
            mapfile -t sources <"$work/sources"
            compile rocksdbjni rocksdbjni "${sources[@]}"
            ;;
        jraft)
            fetch_jraft
            find "$jraft"/{jraft-core,jraft-rheakv/rheakv-core}/src/{main,test}/java -name '*.java' >"$work/sources"
            mapfile -t sources <"$work/sources"
            compile jraft jraft "${sources[@]}"
            ;;&
        jraft | kafka | flink) compile "$1" "runner-$1" "$runner"/{JUnitRunner,Results,Library}.java ;;&
        flink) compile flink jobs-flink "$root"/clients/jvm/jobs/{flink,common}/*.java "$runner"/{Results,Library}.java ;;
        bench) compile bench bench "$root"/clients/jvm/bench/Engine.java ;;
        kafka-4.4) compile kafka-4.4 kafka-4.4 "$root"/clients/jvm/jobs/{kafka,common}/*.java "$runner"/{Results,Library}.java ;;
        spark)
            compile spark runner-spark "$runner"/{ScalaTestRunner,Results,Library}.java
            # Some tests read their resources as files.
            local tests_jar unpacked=$cache/classes/spark-tests
            if [ ! -e "$unpacked/.done" ]; then
                mkdir -p "$unpacked"
                tests_jar=$(class_path spark | tr ':' '\n' | grep '/spark-sql_[^/]*-tests.jar$')
                (cd "$unpacked" && jar -xf "$tests_jar")
                touch "$unpacked/.done"
            fi
            compile spark jobs-spark "$root"/clients/jvm/jobs/{spark,common}/*.java "$runner"/{Results,Library}.java
            # Where executors look for their jars.
            mkdir -p "$cache/spark-home/jars"
            class_path spark | tr ':' '\n' | grep -v -e '-tests.jar$' | xargs ln -sf -t "$cache/spark-home/jars"
            ;;
    esac
}

# --- Running.

# take LIBRARY: sets $which and the flags that put a library under the JVM: stock, which is in the jar; ours; or a path.
take() {
    which=$1 flags=()
    [ "$which" != stock ] || return 0
    local library=${LIBROCKSDBJNI:-}
    if [ "$which" != ours ]; then library=$which which=ours; fi
    if [ -z "$library" ]; then
        say "Building the library"
        cargo build --release --quiet --package spillway-db-jni
        library=$target/release/librocksdbjni.so
    fi
    [ -e "$library" ] || { echo "there is no $library" >&2; exit 2; }
    library=$(readlink -f "$library")
    mkdir -p "$work/lib"
    ln -sf "$library" "$work/lib/librocksdbjni.so"
    flags=("-Djava.library.path=$work/lib" "-Dlibrary=$library")
}

# Crashes leave their reports beside the results; a JVM of a test starts fast rather than ends fast.
jvm() {
    mkdir -p "$work/tmp"
    cd "$work/tmp" # some tests leave files behind
    timeout --kill-after=10 "${limit_s:-3600}" java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-CreateCoredumpOnCrash "-XX:ErrorFile=$results/$which/hs_err_%p.log" \
        "-Djava.io.tmpdir=$work/tmp" ${flags[@]+"${flags[@]}"} "$@"
}

# again RESULTS PATIENCE_S COMMAND...: runs what writes RESULTS again after a crash or a hang, as long as that helps.
again() {
    local file=$1 patience=$2 lines
    shift 2
    while true; do
        lines=$(wc -l <"$file")
        status=0
        (ulimit -c 0 && limit_s=$patience && "$@") >>"${file%.tsv}.log" 2>&1 || status=$?
        [ "$status" != 0 ] || return 0
        echo "the JVM ended with $status after $(tail -n 1 "$file" | cut -f 1,2 | tr '\t' ' ')"
        if [ "$status" = 124 ] || [ "$status" = 137 ]; then
            printf '%s\thang\tno end within %s s\n' "$(tail -n 1 "$file" | cut -f 1,2)" "$patience" >>"$file"
        fi
        [ "$(wc -l <"$file")" != "$lines" ] || break
    done
    printf '%s\t(class)\tfail\tthe JVM ended with %s\n' "${*: -1}" "$status" >>"$file"
}

# start_suite SUITE: an empty file for its results, $file. With AGAIN=yes, one of what has passed.
start_suite() {
    file=$results/$which/$1.tsv
    rm -f "$results/$which/$1.log"
    if [ "${AGAIN:-no}" = yes ]; then
        python3 clients/jvm/results.py passed "$results" "$which" "$1" >"$work/passed"
        mv "$work/passed" "$file"
    else
        : >"$file"
    fi
    started=$SECONDS
    say "$1 on $which"
}

# suite_rocksdbjni [VERSION]: under the jar of another version. Tests of what that no longer has meet a NoSuchMethodError.
suite_rocksdbjni() {
    local class count=0 jar=
    [ $# = 0 ] || rocksdbjni_jar "$1"
    grep -rL '^public abstract class' "$tests" --include='*Test.java' | sed "s#^$tests/java/##; s#/#.#g; s#\.java\$##" | sort >"$work/class-names"
    while read -r class; do
        # A JVM for each: what one leaves in the process is no other's.
        again "$file" 900 jvm -ea -cp "${jar:+$jar:}$cache/classes/runner-rocksdbjni:$cache/classes/rocksdbjni:$(class_path rocksdbjni)" \
            JUnitRunner "$file" "$class" </dev/null
        count=$((count + 1))
        [ $((count % 20)) != 0 ] || echo "$count of $(wc -l <"$work/class-names") classes, $((SECONDS - started)) s"
    done <"$work/class-names"
}

suite_rocksdbjni-10() { suite_rocksdbjni 10.1.3; }

suite_rocksdbjni-11() { suite_rocksdbjni 11.8.1; }

suite_kafka() {
    mapfile -t classes <clients/jvm/kafka/classes.txt
    again "$file" 900 jvm -Dlog4j2.level=INFO -XX:+EnableDynamicAgentLoading --add-opens=java.base/java.util=ALL-UNNAMED \
        -cp "$cache/classes/runner-kafka:$(class_path kafka)" JUnitRunner "$file" "${classes[@]}"
}

suite_jraft() {
    local classes=(core:storage.impl.{LogManager,RocksDBLogStorage,RocksDBSegmentLogStorage}Test
        rheakv/rheakv-core:rhea.storage.{rocksdb.RocksKVStore,rhea.RheaKVStoreWithRocksDB,rhea.DistributedLockRocksDB}Test) class
    for class in "${classes[@]}"; do
        local resources=$jraft/jraft-${class%:*}/src
        again "$file" 900 jvm -ea -Xmx2g --add-opens=java.base/java.{lang,nio,util}=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED \
            -cp "$cache/classes/runner-jraft:$cache/classes/jraft:$jraft/jraft-core/src/main/resources:$resources/main/resources:$resources/test/resources:$(class_path jraft)" \
            JUnitRunner "$file" "com.alipay.sofa.jraft.${class#*:}"
    done
}

suite_flink() {
    again "$file" 1800 jvm -Xmx2g --add-opens=java.base/java.util=ALL-UNNAMED --add-opens=java.base/java.lang=ALL-UNNAMED \
        -cp "$cache/classes/runner-flink:$(class_path flink)" JUnitRunner "$file" \
        org.apache.flink.state.rocksdb.EmbeddedRocksDBStateBackendTest org.apache.flink.state.rocksdb.RocksDBStateBackendConfigTest
}

# The packages that Spark opens to itself.
spark_opens() {
    local package
    for package in lang lang.invoke lang.reflect io net nio util util.concurrent util.concurrent.atomic; do
        echo "--add-opens=java.base/java.$package=ALL-UNNAMED"
    done
    for package in jdk.internal.ref sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar; do
        echo "--add-opens=java.base/$package=ALL-UNNAMED"
    done
    echo "--add-modules=jdk.incubator.vector"
}

# run_spark PATIENCE_S SUITE...
# -ea: a test wants the assertion that a closed iterator meets. Without it RocksDB's library is called with a freed pointer.
run_spark() {
    local patience=$1 suite suites=()
    shift
    for suite in "$@"; do suites+=("org.apache.spark.sql.$suite"); done
    # shellcheck disable=SC2046 # words
    again "$file" "$patience" jvm -ea -Xmx3g -Dspark.testing=true "-Dspark.test.home=$work/tmp" \
        -Dspark.ui.enabled=false -Dio.netty.tryReflectionSetAccessible=true -Djdk.reflect.useDirectMethodHandle=false \
        -Dderby.system.durability=test $(spark_opens) \
        -cp "$cache/classes/runner-spark:$cache/classes/spark-tests:$(class_path spark)" \
        ScalaTestRunner "$file" "$cache/classes/spark-tests" "${suites[@]}"
}

suite_spark-rocksdb() { run_spark 3600 execution.streaming.state.RocksDBSuite; }

suite_spark-store() { run_spark 3600 execution.streaming.state.RocksDBStateStore{,Integration}Suite; }

# Whole streaming jobs, and what else of Spark's has RocksDB in its name.
suite_spark-more() {
    run_spark 3600 streaming.RocksDBStateStore{StreamingAggregation,StreamingDeduplication,FlatMapGroupsWithState}Suite \
        execution.streaming.state.RocksDB{CheckpointFailureInjection,Lineage,StateEncoder,TimestampEncoderOperations}Suite \
        execution.streaming.state.RocksDBStateStore{LockHardening,RowChecksum,CheckpointFormatV2}Suite \
        execution.datasources.v2.state.RocksDBStateDataSourceReadSuite
}

# suites stock|ours|both [SUITE...]
suites() {
    local library libraries=${1:?stock, ours or both} suite failed=0
    shift
    [ "$libraries" != both ] || libraries="stock ours"
    for library in $libraries; do
        take "$library"
        for suite in ${*:-rocksdbjni kafka flink spark-store spark-rocksdb}; do
            prepare "${suite%%-*}"
            start_suite "$suite"
            "suite_$suite"
            echo "$((SECONDS - started)) s"
            python3 clients/jvm/results.py compare "$results" "$which" "$suite" || failed=1
        done
    done
    table
    return "$failed"
}

# natives: of each jar from 9.0 on, of JRaft's and of Flink's. A jar is removed once it is read, unless it was here before.
natives() {
    local lists=$cache/natives version versions metadata=$cache/repository/org/rocksdb/rocksdbjni/maven-metadata-central.xml
    mkdir -p "$lists"
    fetch natives
    versions=$(sed -n 's#.*<version>\(9\..*\|[1-9][0-9][.].*\)</version>.*#\1#p' "$metadata")
    for version in 8.8.1 $versions frdb; do
        [ ! -s "$lists/$version" ] || continue
        local group=org/rocksdb/rocksdbjni named=$version had=yes
        [ "$version" != frdb ] || group=com/ververica/frocksdbjni named=8.10.0-ververica-1.0
        jar=$cache/repository/$group/$named/${group##*/}-$named.jar
        [ -e "$jar" ] || { had=no && fetch_jar "$(dirname "$group" | tr / .):${group##*/}:$named"; }
        unzip -Z1 "$jar" 'org/rocksdb/*.class' | sed 's/\.class$//; s#/#.#g' | xargs javap -p -s -cp "$jar" >"$work/list"
        mv "$work/list" "$lists/$version"
        [ "$had" = yes ] || rm "$jar"
        echo "$version: $(grep -c ' native ' "$lists/$version") natives"
    done
    python3 clients/jvm/natives.py crates/jni/natives.tsv "$lists"/*
}

table() {
    say "Both libraries"
    if [ "${RECORD:-no}" = yes ]; then
        python3 clients/jvm/results.py table "$results" docs/compat.md
    else
        python3 clients/jvm/results.py table "$results"
    fi
}

# --- One class, for who repairs it.

# classes stock|ours CLASS...
classes() {
    take "${1:?stock or ours}"
    prepare rocksdbjni
    : >"$work/class.tsv"
    jvm -ea -Xcheck:jni -cp "$cache/classes/runner-rocksdbjni:$cache/classes/rocksdbjni:$(class_path rocksdbjni)" \
        JUnitRunner "$work/class.tsv" "${@:2}" || echo "the JVM ended with $?"
    grep -v $'\tstarted\t' "$work/class.tsv"
}

# --- Jobs with kills.

job_kafka() {
    prepare kafka-4.4
    fetch kafka-broker
    jvm -cp "$cache/classes/kafka-4.4:$(class_path kafka-4.4)" KafkaKills "$folder" "$kills" "$(class_path kafka-broker)"
}

job_flink() {
    prepare flink
    jvm -cp "$cache/classes/jobs-flink:$(class_path flink)" FlinkKills "$folder" "$kills"
}

job_spark() {
    prepare spark
    # shellcheck disable=SC2046 # words
    SPARK_HOME=$cache/spark-home SPARK_WORKER_DIR=$folder/executors SPARK_SCALA_VERSION=2.13 SPARK_LOCAL_HOSTNAME=localhost \
        jvm -Xmx1g "-Djob.classes=$cache/classes/jobs-spark" $(spark_opens) \
        -cp "$cache/classes/jobs-spark:$(class_path spark)" SparkKills "$folder" "$kills"
}

# jobs stock|ours [JOB...]
jobs() {
    local job failed=0 kills=${KILLS:-3} folder
    take "${1:?stock or ours}"
    shift
    for job in ${*:-kafka flink spark}; do
        say "$job on $which, $kills kills"
        folder=$cache/jobs/$which/$job
        rm -rf "$folder"
        mkdir -p "$folder"
        if (set -e; "job_$job") 2>"$folder/log"; then
            rm -rf "$folder"
        else
            failed=1
            tail -n 20 "$folder/log"
            echo "FAILED $job: its files are in $folder"
        fi
    done
    return "$failed"
}

# --- Speed.

bench_versions=(9.8.4 10.1.3 11.8.1)

# bench: each contender's benchmarks in a JVM of its own, by turns, ROUNDS times (3). BENCH=REGEX chooses benchmarks.
bench() {
    local round version name jar run
    take ours
    prepare bench
    for version in "${bench_versions[@]}"; do rocksdbjni_jar "$version"; done
    rm -rf "$results/bench"
    mkdir -p "$results/bench" "$work/tmp"
    for round in $(seq "${ROUNDS:-3}"); do
        for name in ours "${bench_versions[@]}"; do
            say "Round $round: $name"
            run=() version=$name
            # Ours under the jar that Spark takes.
            if [ "$name" = ours ]; then run=("${flags[@]}") version=${bench_versions[0]}; fi
            rocksdbjni_jar "$version"
            java -cp "$cache/classes/bench:$jar:$(class_path bench)" org.openjdk.jmh.Main "${BENCH:-Engine}" \
                -f 1 -wi 2 -w 1 -i 3 -r 1 -foe true -rf json -rff "$results/bench/$name-$round.json" \
                -jvmArgs "-Xmx2g -Djava.io.tmpdir=$work/tmp ${run[*]}" >"$results/bench/$name-$round.log" ||
                { tail -n 20 "$results/bench/$name-$round.log"; return 1; }
        done
    done
    python3 clients/jvm/bench/report.py "$results/bench"
}

# --- Whole programs.

declare -A measure_part=([spark]=spark [kafka]=kafka-4.4 [flink]=flink)
declare -A measure_class=([spark]=MeasureSpark [kafka]=MeasureKafka [flink]=MeasureFlink)
declare -A measure_variants=([spark]="snapshot changelog" [kafka]="default bounded" [flink]="plain checkpoints")
# Ours runs under the program's own jar. Flink's is a fork of RocksDB 8.10: its backend calls what newer jars do not have.
declare -A measure_contenders=([spark]="ours 9.8.4 10.1.3" [kafka]="ours 9.8.4 10.1.3" [flink]="ours 8.10.0")

# measure [PROGRAM...]: a JVM for each run, ROUNDS times (3). Who goes first changes from round to round.
measure() {
    local program contenders variant contender round i
    take ours
    mkdir -p "$results/measure" "$cache/measure"
    for program in ${*:-spark kafka flink}; do
        prepare "${measure_part[$program]}"
        compile "${measure_part[$program]}" "measure-$program" "$root"/clients/jvm/measure/{common,"$program"}/*.java "$root"/clients/jvm/runner/{Results,Library}.java
        read -ra contenders <<<"${CONTENDERS:-${measure_contenders[$program]}}"
        [ "${FIRST:-1}" != 1 ] || rm -f "$results/measure/$program.jsonl"
        for round in $(seq "${FIRST:-1}" "${ROUNDS:-3}"); do
            for variant in ${VARIANTS:-${measure_variants[$program]}}; do
                for i in "${!contenders[@]}"; do
                    contender=${contenders[$(((i + round - 1) % ${#contenders[@]}))]}
                    say "$program, $variant, round $round: $contender"
                    measure_one "$program" "$variant" "$contender" "$round"
                done
            done
        done
    done
    python3 clients/jvm/measure/report.py "$results/measure"
}

# measure_one PROGRAM VARIANT CONTENDER ROUND. The heap is whole from the start: what differs in memory is the library's.
measure_one() {
    local part=${measure_part[$1]} folder=$work/measure run=() opens=() jar= heap=${HEAP:-1g}
    rm -rf "$folder"
    mkdir -p "$folder"
    case $3 in
        ours) run=("${flags[@]}") ;;
        8.10.0) ;;
        *) rocksdbjni_jar "$3" ;;
    esac
    if [ "$1" = spark ]; then
        heap=${HEAP:-2g}
        mapfile -t opens < <(spark_opens)
        set -- "$@" "$cache/measure/spark-${KEYS:-1000000}-${BATCHES:-15}-${BATCH_ROWS:-100000}"
        rm -rf "$5.new" # of a run that was ended
    fi
    timeout --kill-after=10 "${limit_s:-900}" java "-Xms$heap" "-Xmx$heap" -XX:+AlwaysPreTouch -XX:+UseSerialGC -XX:-CreateCoredumpOnCrash \
        "-XX:ErrorFile=$results/measure/hs_err_%p.log" "-Djava.io.tmpdir=$folder" "-Dcontender=$3" "-Dround=$4" "${run[@]}" "${opens[@]}" \
        -cp "$cache/classes/measure-$1:${jar:+$jar:}$(class_path "$part")" \
        "${measure_class[$1]}" "$results/measure/$1.jsonl" "$folder" "$2" "${@:5}" 2>"$results/measure/$1.log" ||
        { grep -v $'^\tat ' "$results/measure/$1.log" | tail -n 20; return 1; }
}

# --- The demonstration.

pyspark_version=4.2.1

# demo_spark: PySpark's stateful stream with an executor killed, RocksDB's library and ours by turns, ROUNDS times (1).
demo_spark() {
    local round which=demo failed=0 python=$cache/pyspark/bin/python folder=$work/demo result=$results/demo-spark.json
    take ours
    command -v java >/dev/null || ./scripts/setup.sh jvm
    if ! "$python" -c 'import pyspark' 2>/dev/null; then
        say "Fetching PySpark $pyspark_version (450 MB)"
        rm -rf "$cache/pyspark"
        python3 -m venv "$cache/pyspark"
        timeout "$patience_s" "$cache/pyspark/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check \
            "pyspark==$pyspark_version" || { echo "SKIPPED: PySpark cannot be had here"; exit 3; }
    fi
    rm -f "$result"
    for round in $(seq "${ROUNDS:-1}"); do
        for which in stock ours; do
            say "PySpark on $which, round $round"
            rm -rf "$folder"
            mkdir -p "$folder"
            set -- "$folder" "$result"
            [ "$which" = stock ] || set -- "$@" "$work/lib/librocksdbjni.so"
            SPARK_WORKER_DIR=$folder/executors SPARK_LOCAL_HOSTNAME=localhost PYSPARK_PYTHON=$python \
                "$python" clients/jvm/demo/counts.py "$@" 2>"$folder/log" || { failed=1 && tail -n 20 "$folder/log"; }
        done
    done
    python3 clients/jvm/demo/report.py "$result"
    return "$failed"
}

# --- For users.

# jar_of_library FILE: the library as the resource that RocksDB's jar looks for in every jar of the class path.
jar_of_library() {
    local which name=librocksdbjni-linux64.so
    [ "$(uname -m)" != aarch64 ] || name=librocksdbjni-linux-aarch64.so
    take ours
    command -v jar >/dev/null || ./scripts/setup.sh jvm
    cp "$work/lib/librocksdbjni.so" "$work/$name"
    jar --create --file "${1:?a name for the jar}" -C "$work" "$name"
    echo "$1: $name, $(stat -c %s "$1") bytes. Put it before RocksDB's jar on the class path."
}

# --- What make test runs.

# environment: options from the environment of the process reach a program in Java, and a mistake there is an error.
environment() {
    [ "$which" = ours ] || return 0
    local dir=$work/environment program=$root/clients/jvm/runner/Environment.java
    mkdir -p "$dir"
    echo '{"databases": {"*": {"params": {"options": {"num_levels": 4}, "dyna_cf_opt": {"num_levels": 5}}}}}' >"$dir/app.json"
    say "environment on ours"
    (
        export SPILLWAY_CONFIG=$dir/app.json SPILLWAY_OPTIONS=memtable_factory=trie
        jvm -cp "$(class_path rocksdbjni)" "$program" "$dir/db" num_levels=4 num_levels=5 memtable_factory=trie write_buffer_size=33554432
        SPILLWAY_OPTIONS=num_level=3 jvm -cp "$(class_path rocksdbjni)" "$program" "$dir/refused" SPILLWAY_OPTIONS num_levels
    )
}

# quick [LIBRARY]: fails on any test, and on any warning of -Xcheck:jni with one of rocksdbjni's methods at the top.
quick() {
    local class classes=(org.rocksdb.RocksDBTest org.rocksdb.WriteBatchTest)
    take "${1:-ours}"
    prepare rocksdbjni
    prepare kafka-4.4
    start_suite quick
    for class in "${classes[@]}"; do
        # The test left out writes and reads 2 GiB: a minute.
        again "$file" 40 jvm -ea -Xcheck:jni -Dleave.out=getOutOfArrayMaxSizeValue -cp "$cache/classes/runner-rocksdbjni:$cache/classes/rocksdbjni:$(class_path rocksdbjni)" \
            JUnitRunner "$file" "$class"
    done
    again "$file" 40 jvm -Xcheck:jni -cp "$cache/classes/kafka-4.4:$(class_path kafka-4.4)" Topology "$file" "$work/topology"
    environment
    echo "$((SECONDS - started)) s"
    python3 clients/jvm/results.py warnings "${file%.tsv}.log"
    python3 clients/jvm/results.py compare "$results" "$which" quick
}

command=${1:-help}
[ $# = 0 ] || shift
case $command in
    setup) for part in ${*:-rocksdbjni kafka kafka-4.4 kafka-broker spark flink bench}; do prepare "$part"; done ;;
    quick) quick "$@" ;;
    suites) suites "$@" ;;
    class) classes "$@" ;;
    jobs) jobs "$@" ;;
    bench) bench ;;
    measure) measure "$@" ;;
    demo-spark) demo_spark ;;
    jar) jar_of_library "$@" ;;
    natives) natives ;;
    why) python3 clients/jvm/results.py why "$results" "$@" ;;
    table) table ;;
    *)
        sed -n '2,/^set -/{/^#/p}' "$0" >&2
        exit 2
        ;;
esac; exit

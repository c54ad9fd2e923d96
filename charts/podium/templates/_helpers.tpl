{{- define "podium.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "podium.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "podium.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "podium.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "podium.selectorLabels" -}}
app.kubernetes.io/name: {{ include "podium.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Of the pod that helm test runs; the Service must not choose it. */}}
{{- define "podium.testLabels" -}}
app.kubernetes.io/name: {{ include "podium.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "podium.labels" -}}
{{ include "podium.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "podium.metadata" -}}
name: {{ include "podium.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "podium.labels" . | nindent 2 }}
{{- end -}}

{{- define "podium.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "podium.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Names cluster-wide objects apart from those of the same release in another namespace. */}}
{{- define "podium.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "podium.fullname" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "podium.image" -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default .version .tag) -}}
{{- end -}}
{{- end -}}

{{/* Writes a value of YAML as text; a large whole number is not written as 1e+06. */}}
{{- define "podium.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) (lt . 1e15) (gt . -1e15) -}}
{{- printf "%d" (int64 .) -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end -}}

{{/* What Podium calls a policy: a file of its volume, or the name that it ships under. */}}
{{- define "podium.policy" -}}
{{- $given := index . 0 -}}
{{- $name := index . 1 -}}
{{- if hasKey $given.cards $name -}}
/etc/podium/policy/{{ $name }}.json
{{- else if hasKey $given.sources $name -}}
/etc/podium/policy/{{ $name }}.py
{{- else if contains "." $name -}}
/etc/podium/policy/{{ $name }}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end -}}

{{/* Marks what runs a policy that is not validated. */}}
{{- define "podium.unvalidated" -}}
{{- if .Values.policy.unvalidated -}}
podium.dev/unvalidated: "true"
{{- end -}}
{{- end -}}

{{/* The settings of Podium by section and name: those that follow from other values, then yours. */}}
{{- define "podium.settings" -}}
{{- $policies := .Values.policy -}}
{{- $shadow := list -}}
{{- range without $policies.shadow $policies.name -}}
{{- $shadow = append $shadow (include "podium.policy" (list $policies .)) -}}
{{- end -}}
{{- $components := list "extender" -}}
{{- if .Values.learning.enabled -}}
{{- $components = append $components "learning" -}}
{{- end -}}
{{- $serve := dict "host" "0.0.0.0" "port" .Values.service.port "components" (join "," $components) -}}
{{- if eq .Values.mode "extender" -}}
{{- /* Callers hear of a pod that ends a moment late. */ -}}
{{- $serve = merge $serve (dict "drain_delay_s" 5) -}}
{{- end -}}
{{- if .Values.tls.secretName -}}
{{- $serve = merge $serve (dict "tls_cert" "/etc/podium/tls/tls.crt" "tls_key" "/etc/podium/tls/tls.key") -}}
{{- end -}}
{{- $extender := dict "policy" (include "podium.policy" (list $policies $policies.name))
      "shadow" (join "," $shadow) "unvalidated" $policies.unvalidated
      "filter" .Values.extender.filter "bind" .Values.extender.bind
      "events" .Values.extender.events "twin" .Values.extender.twin -}}
{{- if eq .Values.mode "scheduler" -}}
{{- /* Its kube-scheduler asks inside the pod; who comes for metrics must not. NodeResourcesFit and
ImageLocality give 200 points at most. */ -}}
{{- $decisive := add1 (div 20 (int .Values.extender.weight)) -}}
{{- $extender = merge $extender (dict "loopback_only" true "decisive_points" $decisive) -}}
{{- end -}}
{{- $made := dict "serve" $serve "extender" $extender
      "compile" (dict "cache" "/var/cache/podium/compiled") -}}
{{- if .Values.learning.enabled -}}
{{- $_ := set $made "online" (dict
      "lambda_uncertainty" .Values.config.lambdaUncertainty
      "beta_exploration" .Values.config.betaExploration
      "gamma_interference" .Values.config.gammaInterference
      "exploration_cap" .Values.config.explorationCap
      "enable_interference" .Values.config.enableInterference) -}}
{{- end -}}
{{- if not .Values.store.urlSecret.name -}}
{{- $_ := set $made "store" (dict "url" "sqlite:////var/lib/podium/podium.db") -}}
{{- end -}}
{{- mergeOverwrite $made (deepCopy .Values.settings) | toYaml -}}
{{- end -}}

{{/* The configuration of the kube-scheduler that asks Podium: ours, or in mode extender yours. */}}
{{- define "podium.kubeSchedulerConfiguration" -}}
{{- $isOurs := eq .Values.mode "scheduler" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  {{- if $isOurs }}
  resourceName: {{ .Values.scheduler.name }}
  resourceNamespace: {{ .Release.Namespace }}
  # Another replica takes over within 9 s of a leader's death; 15, 10 and 2 s are kube-scheduler's
  # own. A leader whose API server is away for longer than 5 s starts anew.
  leaseDuration: 8s
  renewDeadline: 5s
  retryPeriod: 1s
  {{- end }}
clientConnection:
  {{- if not $isOurs }}
  kubeconfig: /etc/kubernetes/scheduler.conf
  {{- end }}
  qps: {{ .Values.scheduler.qps }}
  burst: {{ .Values.scheduler.burst }}
# A policy is asked about every node that a pod fits on, not about a sample of them.
percentageOfNodesToScore: 100
profiles:
  - schedulerName: {{ ternary .Values.scheduler.name "default-scheduler" $isOurs }}
    {{- include "podium.profile" . | nindent 4 }}
{{- if .Values.extender.enabled }}
extenders:
  {{- include "podium.extender" . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "podium.urlPrefix" -}}
{{- if eq .Values.mode "scheduler" -}}
http://127.0.0.1:{{ .Values.service.port }}/extender
{{- else -}}
http{{ if .Values.tls.secretName }}s{{ end }}://{{ default "CLUSTER_IP" .Values.service.clusterIP }}:{{ .Values.service.port }}/extender
{{- end -}}
{{- end -}}

{{/* Whether Podium counts GPUs that kube-scheduler does not: then nobody may pass it by. */}}
{{- define "podium.counts" -}}
{{- if or .Values.extender.filter .Values.extender.bind -}}
true
{{- end -}}
{{- end -}}

{{- define "podium.extender" -}}
- urlPrefix: {{ include "podium.urlPrefix" . }}
  prioritizeVerb: prioritize
  {{- if .Values.extender.filter }}
  filterVerb: filter
  {{- end }}
  {{- if .Values.extender.bind }}
  bindVerb: bind
  {{- end }}
  weight: {{ .Values.extender.weight }}
  # Names instead of whole nodes: with filterVerb, kube-scheduler needs it to score correctly.
  nodeCacheCapable: true
  {{- if include "podium.counts" . }}
  # What Podium refuses must not be bound without it: pods wait while it does not answer.
  ignorable: false
  {{- else }}
  # Pods are scheduled without Podium while it does not answer.
  ignorable: true
  {{- end }}
  httpTimeout: {{ .Values.extender.httpTimeoutMs }}ms
  {{- if .Values.tls.secretName }}
  enableHTTPS: true
  tlsConfig:
    caFile: /etc/kubernetes/podium/ca.crt
  {{- end }}
  {{- with .Values.extender.managedResources }}
  managedResources:
    {{- range . }}
    - name: {{ . }}
      ignoredByScheduler: false
    {{- end }}
  {{- end }}
{{- end -}}

{{/* The weight of a preference that kube-scheduler weighs so much by itself. One point of it,
of 100, outvotes all 1000 of Podium with NodeResourcesFit and ImageLocality together. */}}
{{- define "podium.preference" -}}
{{- mul . 10000 -}}
{{- end -}}

{{/* What makes kube-scheduler keep the preferences of pods first, ask Podium second, and pack third. */}}
{{- define "podium.profile" -}}
{{- $weight := int .Values.extender.weight -}}
plugins:
  multiPoint:
    # What pods and nodes prefer outvotes Podium, in the proportions that kube-scheduler gives it.
    enabled:
      - name: TaintToleration
        weight: {{ include "podium.preference" (mul 3 $weight) }}
      {{- range list "NodeAffinity" "PodTopologySpread" "InterPodAffinity" }}
      - name: {{ . }}
        weight: {{ include "podium.preference" (mul 2 $weight) }}
      {{- end }}
      {{- if semverCompare ">=1.34-0" .Capabilities.KubeVersion.Version }}
      - name: DynamicResources
        weight: {{ include "podium.preference" (mul 2 $weight) }}
      {{- end }}
  score:
    disabled:
      - name: NodeResourcesBalancedAllocation
      {{- if eq .Values.scheduler.resourceScore "none" }}
      - name: NodeResourcesFit
      {{- end }}
pluginConfig:
  {{- if ne .Values.scheduler.resourceScore "none" }}
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      scoringStrategy:
        type: {{ .Values.scheduler.resourceScore }}
        resources:
          - name: nvidia.com/gpu
            weight: 10
          - name: cpu
            weight: 1
  {{- end }}
  # Pods that do not ask to be spread are not: kube-scheduler's own spreading would count as a preference.
  - name: PodTopologySpread
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: PodTopologySpreadArgs
      defaultingType: List
      defaultConstraints: []
{{- end -}}

{{/* Policies that are named and not there, and one that must not score. */}}
{{- define "podium.checkPolicy" -}}
{{- $shipped := .Files.Get "policies.txt" | trim | splitList "\n" -}}
{{- with .Values.policy -}}
{{- $policy := . -}}
{{- range $name := prepend .shadow .name -}}
{{- if contains "." $name -}}
{{- if not $policy.existingConfigMap -}}
{{- fail (printf "%s is a file, but policy.existingConfigMap is empty: set it, or give the text in policy.sources" $name) -}}
{{- end -}}
{{- else if not (or (has $name $shipped) (hasKey $policy.sources $name)) -}}
{{- fail (printf "unknown policy %q: give its text in policy.sources, or name one that ships with Podium: %s" $name (join ", " $shipped)) -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := .sources -}}
{{- if has (lower $name | replace "_" "-") $shipped -}}
{{- fail (printf "policy.sources.%s has the name of a policy that ships with Podium: give it another" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := .cards -}}
{{- if not (hasKey $policy.sources $name) -}}
{{- fail (printf "policy.cards.%s is the card of a policy that is not in policy.sources" $name) -}}
{{- end -}}
{{- end -}}
{{- if and (hasKey .cards .name) (not .unvalidated) -}}
{{- include "podium.checkCard" (list .name (get .cards .name | fromJson)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the card of the policy that scores says; Podium reads it alike when it starts. */}}
{{- define "podium.checkCard" -}}
{{- $name := index . 0 -}}
{{- $card := index . 1 -}}
{{- $decision := ternary $card.decision dict (kindIs "map" $card.decision) -}}
{{- $isTold := or (hasKey $card "decision") (has $card.origin (list "tuned" "found")) -}}
{{- if and $isTold (not (and (kindIs "bool" $decision.promoted) $decision.promoted)) -}}
{{- $reasons := default (list "its card holds no decision to promote it") $decision.reasons -}}
{{- fail (printf "policy.name is %s, which is not validated (%s): promote it, list it in policy.shadow, or set policy.unvalidated=true" $name ($reasons | join "; ")) -}}
{{- end -}}
{{- end -}}

{{/* Settings that other values of the chart make: said twice, one would pass what is checked here. */}}
{{- define "podium.checkSettings" -}}
{{- $made := dict "extender.policy" "policy.name" "extender.shadow" "policy.shadow"
      "extender.unvalidated" "policy.unvalidated" "extender.filter" "extender.filter"
      "extender.bind" "extender.bind" "extender.events" "extender.events"
      "extender.twin" "extender.twin" "serve.components" "learning.enabled" -}}
{{- range $setting, $value := $made -}}
{{- $parts := splitList "." $setting -}}
{{- if hasKey (default dict (index $.Values.settings (first $parts))) (last $parts) -}}
{{- fail (printf "settings.%s is made of another value: set %s" $setting $value) -}}
{{- end -}}
{{- end -}}
{{- if hasKey .Values.podLabels "podium.dev/unvalidated" -}}
{{- fail "podLabels must not set podium.dev/unvalidated: it follows from policy.unvalidated" -}}
{{- end -}}
{{- end -}}

{{/* What the schema cannot say: values that exclude each other. */}}
{{- define "podium.check" -}}
{{- include "podium.checkPolicy" . -}}
{{- include "podium.checkSettings" . -}}
{{- if and (include "podium.counts" .) (eq .Values.mode "extender") (gt (int .Values.replicas) 1) -}}
{{- fail (printf "replicas is %d in mode extender with extender.filter or extender.bind, and each replica would give out the same GPUs: set replicas=1" (int .Values.replicas)) -}}
{{- end -}}
{{- if eq .Values.scheduler.name "default-scheduler" -}}
{{- fail "scheduler.name is default-scheduler, which the cluster's own kube-scheduler answers to: choose another name, or set mode=extender" -}}
{{- end -}}
{{- range $secret := list "serve.token" "store.url" -}}
{{- $parts := splitList "." $secret -}}
{{- if hasKey (default dict (index $.Values.settings (first $parts))) (last $parts) -}}
{{- fail (printf "settings.%s is secret, and settings become a ConfigMap: see store.urlSecret and networkPolicy.from" $secret) -}}
{{- end -}}
{{- end -}}
{{- if and (not .Values.extender.enabled) (eq .Values.mode "extender") -}}
{{- fail "extender.enabled is false in mode extender, where your own kube-scheduler asks Podium: take extenders out of its configuration" -}}
{{- end -}}
{{- if and .Values.tls.secretName (eq .Values.mode "scheduler") -}}
{{- fail "tls.secretName is set in mode scheduler, where kube-scheduler asks Podium inside their pod: leave it empty, or set mode=extender" -}}
{{- end -}}
{{- if and .Values.learning.enabled (gt (int .Values.replicas) 1) (not .Values.store.urlSecret.name) -}}
{{- fail (printf "replicas is %d and learning.enabled is true, but a SQLite store belongs to one pod: set replicas=1, or store.urlSecret.name to a Secret with a URL of PostgreSQL" (int .Values.replicas)) -}}
{{- end -}}
{{- end -}}

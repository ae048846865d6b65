/**
 * The published shape of the kinds that we deploy, as far as a service proxy could have a use for their fields. A field
 * that is not here is taken for a typing mistake; a real one is added here first.
 */
import type { Data } from './chart.ts';
import {
  dnsName,
  flag,
  integer,
  intOrText,
  list,
  mapOf,
  object,
  oneOf,
  port,
  quantity,
  type Shape,
  text,
} from './shape.ts';

const clusterMetadata = object({ 'name!': dnsName, labels: mapOf(text), annotations: mapOf(text) });
const metadata = object({
  'name!': dnsName,
  'namespace!': dnsName,
  labels: mapOf(text),
  annotations: mapOf(text),
});
const selector = object({ 'matchLabels!': mapOf(text) });

const probe = object({
  'httpGet!': object({
    'path!': text,
    'port!': intOrText,
    host: text,
    scheme: oneOf('HTTP', 'HTTPS'),
  }),
  initialDelaySeconds: integer,
  periodSeconds: integer,
  timeoutSeconds: integer,
  failureThreshold: integer,
  successThreshold: integer,
});

const environment = object({
  'name!': text,
  value: text,
  valueFrom: object({
    fieldRef: object({ 'fieldPath!': text }),
    secretKeyRef: object({ 'name!': dnsName, 'key!': text, optional: flag }),
    configMapKeyRef: object({ 'name!': dnsName, 'key!': text, optional: flag }),
  }),
});

const resources = object({ requests: mapOf(quantity), limits: mapOf(quantity) });

const container = object({
  'name!': dnsName,
  'image!': text,
  imagePullPolicy: oneOf('Always', 'IfNotPresent', 'Never'),
  command: list(text),
  args: list(text),
  env: list(environment),
  ports: list(object({ 'name!': dnsName, 'containerPort!': port, protocol: oneOf('TCP', 'UDP', 'SCTP') })),
  terminationMessagePolicy: oneOf('File', 'FallbackToLogsOnError'),
  startupProbe: probe,
  livenessProbe: probe,
  readinessProbe: probe,
  resources,
  securityContext: object({
    allowPrivilegeEscalation: flag,
    privileged: flag,
    readOnlyRootFilesystem: flag,
    runAsNonRoot: flag,
    runAsUser: integer,
    runAsGroup: integer,
    capabilities: object({ add: list(text), drop: list(text) }),
  }),
  volumeMounts: list(
    object({ 'name!': dnsName, 'mountPath!': text, readOnly: flag, subPath: text, mountPropagation: text }),
  ),
});

const keys = list(object({ 'key!': text, 'path!': text, mode: integer }));
const fromObject = object({ 'name!': dnsName, items: keys, optional: flag });

const volume = object({
  'name!': dnsName,
  configMap: object({ 'name!': dnsName, items: keys, defaultMode: integer, optional: flag }),
  secret: object({ 'secretName!': dnsName, items: keys, defaultMode: integer, optional: flag }),
  projected: object({
    'sources!': list(object({ configMap: fromObject, secret: fromObject })),
    defaultMode: integer,
  }),
  hostPath: object({
    'path!': text,
    type: oneOf('DirectoryOrCreate', 'Directory', 'FileOrCreate', 'File', 'Socket', ''),
  }),
  emptyDir: object({ medium: text, sizeLimit: quantity }),
});

const requirements = list(
  object({
    'key!': text,
    'operator!': oneOf('In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'),
    values: list(text),
  }),
);
const nodeSelectorTerm = object({ matchExpressions: requirements, matchFields: requirements });
const podAffinityTerms = list(
  object({ 'topologyKey!': text, labelSelector: object({ matchLabels: mapOf(text) }) }),
);

const podSpec = object({
  hostNetwork: flag,
  dnsPolicy: oneOf('Default', 'ClusterFirst', 'ClusterFirstWithHostNet', 'None'),
  priorityClassName: text,
  serviceAccountName: text,
  automountServiceAccountToken: flag,
  enableServiceLinks: flag,
  terminationGracePeriodSeconds: integer,
  imagePullSecrets: list(object({ 'name!': text })),
  securityContext: object({
    runAsUser: integer,
    runAsGroup: integer,
    runAsNonRoot: flag,
    seccompProfile: object({
      'type!': oneOf('RuntimeDefault', 'Localhost', 'Unconfined'),
      localhostProfile: text,
    }),
    seLinuxOptions: object({ type: text, level: text, role: text, user: text }),
  }),
  affinity: object({
    nodeAffinity: object({
      requiredDuringSchedulingIgnoredDuringExecution: object({
        'nodeSelectorTerms!': list(nodeSelectorTerm),
      }),
      preferredDuringSchedulingIgnoredDuringExecution: list(
        object({ 'weight!': integer, 'preference!': nodeSelectorTerm }),
      ),
    }),
    podAntiAffinity: object({ requiredDuringSchedulingIgnoredDuringExecution: podAffinityTerms }),
  }),
  nodeSelector: mapOf(text),
  tolerations: list(
    object({
      key: text,
      operator: oneOf('Exists', 'Equal'),
      value: text,
      effect: oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute'),
      tolerationSeconds: integer,
    }),
  ),
  initContainers: list(container),
  'containers!': list(container),
  volumes: list(volume),
});

function kind(
  apiVersion: string,
  name: string,
  fields: Readonly<Record<string, Shape>>,
): readonly [string, Shape] {
  const shape = object({ 'apiVersion!': oneOf(apiVersion), 'kind!': oneOf(name), ...fields });
  return [`${apiVersion} ${name}`, shape];
}

const KINDS: ReadonlyMap<string, Shape> = new Map([
  kind('v1', 'ServiceAccount', { 'metadata!': metadata, automountServiceAccountToken: flag }),
  kind('v1', 'ConfigMap', { 'metadata!': metadata, 'data!': mapOf(text) }),
  kind('v1', 'Pod', { 'metadata!': metadata, 'spec!': podSpec }),
  kind('rbac.authorization.k8s.io/v1', 'ClusterRole', {
    'metadata!': clusterMetadata,
    'rules!': list(
      object({
        'apiGroups!': list(text),
        'resources!': list(text),
        'verbs!': list(
          oneOf('get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'),
        ),
        resourceNames: list(text),
      }),
    ),
  }),
  kind('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', {
    'metadata!': clusterMetadata,
    'roleRef!': object({
      'apiGroup!': oneOf('rbac.authorization.k8s.io'),
      'kind!': oneOf('ClusterRole', 'Role'),
      'name!': dnsName,
    }),
    'subjects!': list(object({ 'kind!': oneOf('ServiceAccount'), 'name!': dnsName, 'namespace!': dnsName })),
  }),
  kind('apps/v1', 'DaemonSet', {
    'metadata!': metadata,
    'spec!': object({
      'selector!': selector,
      minReadySeconds: integer,
      revisionHistoryLimit: integer,
      updateStrategy: object({
        'type!': oneOf('RollingUpdate', 'OnDelete'),
        rollingUpdate: object({ maxUnavailable: intOrText, maxSurge: intOrText }),
      }),
      'template!': object({
        'metadata!': object({ 'labels!': mapOf(text), annotations: mapOf(text) }),
        'spec!': podSpec,
      }),
    }),
  }),
  kind('monitoring.coreos.com/v1', 'PrometheusRule', {
    'metadata!': metadata,
    'spec!': object({
      'groups!': list(
        object({
          'name!': text,
          interval: text,
          'rules!': list(
            object({
              'alert!': text,
              'expr!': text,
              for: text,
              labels: mapOf(text),
              annotations: mapOf(text),
            }),
          ),
        }),
      ),
    }),
  }),
  kind('monitoring.coreos.com/v1', 'PodMonitor', {
    'metadata!': metadata,
    'spec!': object({
      'selector!': selector,
      'podMetricsEndpoints!': list(
        object({
          'port!': text,
          path: text,
          interval: text,
          honorLabels: flag,
          scrapeTimeout: text,
          relabelings: list(
            object({
              sourceLabels: list(text),
              targetLabel: text,
              regex: text,
              replacement: text,
              action: text,
            }),
          ),
        }),
      ),
    }),
  }),
]);

/** What is wrong with an object, as the API server would see it. */
export function complaints(candidate: Data): readonly string[] {
  const name = `${String(candidate['apiVersion'])} ${String(candidate['kind'])}`;
  return KINDS.get(name)?.(candidate, String(candidate['kind'])) ?? [`${name}: no such kind`];
}

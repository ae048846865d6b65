/**
 * What Kubernetes does not know in a manifest: fields, and kinds that look like a misspelling.
 *
 * The table has every field that Kubernetes 1.36 knows of the objects that Junction reads, used or not.
 * `name:Shape` is a map with the fields of that shape, `name:Shape[]` a list of such maps. A field without a shape holds
 * a scalar, a list of scalars, or a map with any keys (labels, annotations, capacity, fieldsV1).
 */
import { apiVersionOf, KINDS } from '../../model/project/names.ts';
import { nearest } from '../../text/suggest.ts';
import type { TextPath } from '../../text/yaml.ts';
import { printPath } from '../../text/cursor.ts';
import { escape, quote } from '../../text/printable.ts';

const OBJECT = 'apiVersion kind metadata:ObjectMeta';
const PORT = 'name port protocol appProtocol';
const CONDITION = 'type status reason message lastTransitionTime';

const SHAPES = {
  // A list's metadata means nothing, and kubectl takes any.
  List: 'apiVersion kind metadata items',

  ObjectMeta: `name namespace labels annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers
    generateName generation managedFields:ManagedFields[] ownerReferences:OwnerReference[] resourceVersion selfLink uid`,
  ManagedFields: 'apiVersion fieldsType fieldsV1 manager operation subresource time',
  OwnerReference: 'apiVersion blockOwnerDeletion controller kind name uid',
  ObjectReference: 'apiVersion fieldPath kind name namespace resourceVersion uid',

  Service: `${OBJECT} spec:ServiceSpec status:ServiceStatus`,
  ServiceSpec: `allocateLoadBalancerNodePorts clusterIP clusterIPs externalIPs externalName externalTrafficPolicy
    healthCheckNodePort internalTrafficPolicy ipFamilies ipFamilyPolicy loadBalancerClass loadBalancerIP
    loadBalancerSourceRanges ports:ServicePort[] publishNotReadyAddresses selector sessionAffinity
    sessionAffinityConfig:SessionAffinityConfig trafficDistribution type`,
  ServicePort: `${PORT} nodePort targetPort`,
  SessionAffinityConfig: 'clientIP:ClientIPConfig',
  ClientIPConfig: 'timeoutSeconds',
  ServiceStatus: 'conditions:Condition[] loadBalancer:LoadBalancerStatus',
  Condition: `${CONDITION} observedGeneration`,
  LoadBalancerStatus: 'ingress:LoadBalancerIngress[]',
  LoadBalancerIngress: 'hostname ip ipMode ports:PortStatus[]',
  PortStatus: 'error port protocol',

  EndpointSlice: `${OBJECT} addressType endpoints:Endpoint[] ports:EndpointPort[]`,
  Endpoint: `addresses conditions:EndpointConditions deprecatedTopology hints:EndpointHints hostname nodeName
    targetRef:ObjectReference zone`,
  EndpointConditions: 'ready serving terminating',
  EndpointHints: 'forNodes:Hint[] forZones:Hint[]',
  Hint: 'name',
  EndpointPort: PORT,

  Endpoints: `${OBJECT} subsets:EndpointSubset[]`,
  EndpointSubset: 'addresses:EndpointAddress[] notReadyAddresses:EndpointAddress[] ports:EndpointPort[]',
  EndpointAddress: 'hostname ip nodeName targetRef:ObjectReference',

  Node: `${OBJECT} spec:NodeSpec status:NodeStatus`,
  NodeSpec:
    'configSource:NodeConfigSource externalID podCIDR podCIDRs providerID taints:Taint[] unschedulable',
  NodeConfigSource: 'configMap:NodeConfigMap',
  NodeConfigMap: 'kubeletConfigKey name namespace resourceVersion uid',
  Taint: 'effect key timeAdded value',
  NodeStatus: `addresses:NodeAddress[] allocatable capacity conditions:NodeCondition[] config:NodeConfigStatus
    daemonEndpoints:NodeDaemonEndpoints declaredFeatures features:NodeFeatures images:ContainerImage[]
    nodeInfo:NodeSystemInfo phase runtimeHandlers:NodeRuntimeHandler[] volumesAttached:AttachedVolume[] volumesInUse`,
  NodeAddress: 'address type',
  NodeCondition: `${CONDITION} lastHeartbeatTime`,
  NodeConfigStatus: `active:NodeConfigSource assigned:NodeConfigSource error lastKnownGood:NodeConfigSource`,
  NodeDaemonEndpoints: 'kubeletEndpoint:DaemonEndpoint',
  // The one field of these objects that begins with a capital.
  DaemonEndpoint: 'Port',
  NodeFeatures: 'supplementalGroupsPolicy',
  ContainerImage: 'names sizeBytes',
  NodeSystemInfo: `architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion kubeletVersion machineID
    operatingSystem osImage swap:NodeSwapStatus systemUUID`,
  NodeSwapStatus: 'capacity',
  NodeRuntimeHandler: 'features:NodeRuntimeHandlerFeatures name',
  NodeRuntimeHandlerFeatures: 'recursiveReadOnlyMounts userNamespaces',
  AttachedVolume: 'devicePath name',
} as const;

/** What a field holds, where that is known: a map, or a list of maps. */
interface Holds {
  readonly shape: ObjectShape;
  readonly isList: boolean;
}

export type ObjectShape = ReadonlyMap<string, Holds | undefined>;

const shapes = new Map<string, ObjectShape>();

/** No shape holds itself, so this ends. */
export function objectShape(name: keyof typeof SHAPES): ObjectShape {
  const known = shapes.get(name);
  if (known !== undefined) return known;
  const shape = new Map(SHAPES[name].split(/\s+/).map(readField));
  shapes.set(name, shape);
  return shape;
}

function readField(text: string): readonly [string, Holds | undefined] {
  const [name = '', held] = text.split(':');
  if (held === undefined) return [name, undefined];
  const isList = held.endsWith('[]');
  return [name, { shape: objectShape((isList ? held.slice(0, -2) : held) as keyof typeof SHAPES), isList }];
}

interface UnknownField {
  readonly path: TextPath;
  /** `unknown field "spec.ports[0].protcol"; did you mean "protocol"?` */
  readonly message: string;
}

/** One template can make a hundred thousand of them; more than this of one object are of no use. */
const MOST_FOUND = 50;
/** No field has a longer name by far. */
const MOST_SHOWN = 60;

/**
 * Fields that Kubernetes does not know, and how many there are besides. An API server drops them with a warning, or
 * refuses the object (strict decoding).
 */
export function unknownFields(
  raw: unknown,
  root: ObjectShape,
): { readonly found: readonly UnknownField[]; readonly more: number } {
  const found: UnknownField[] = [];
  let more = 0;
  const visit = (value: unknown, { shape, isList }: Holds, path: TextPath): void => {
    if (typeof value !== 'object' || value === null || Array.isArray(value) !== isList) return;
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) visit(item, { shape, isList: false }, [...path, index]);
      return;
    }
    for (const [name, inner] of Object.entries(value)) {
      const held = shape.get(name);
      if (held !== undefined) visit(inner, held, [...path, name]);
      else if (shape.has(name)) continue;
      else if (found.length < MOST_FOUND) found.push(unknownField(name, path, shape, root));
      else more += 1;
    }
  };
  visit(raw, { shape: root, isList: false }, []);
  return { found, more };
}

function unknownField(name: string, parent: TextPath, shape: ObjectShape, root: ObjectShape): UnknownField {
  const isLong = name.length > MOST_SHOWN;
  const shown = escape(isLong ? `${name.slice(0, MOST_SHOWN)}…` : name);
  const meant = isLong ? undefined : (nearest(name, shape.keys()) ?? placeOf(name, root));
  const hint = meant === undefined ? '' : `; did you mean "${meant}"?`;
  const message = `unknown field "${printPath([...parent, shown])}"${hint}`;
  return { path: [...parent, name], message };
}

/** Wrong indentation puts a field into the wrong map: where it belongs, if there is one place nearer to the top than all others. */
function placeOf(name: string, root: ObjectShape): string | undefined {
  let level: (readonly [string, ObjectShape])[] = [['', root]];
  while (level.length > 0) {
    const places = level.filter(([, shape]) => shape.has(name));
    if (places.length > 0) return places.length === 1 ? `${places[0]?.[0]}${name}` : undefined;
    level = level.flatMap(([prefix, shape]) =>
      [...shape].flatMap(([field, held]): (readonly [string, ObjectShape])[] =>
        held === undefined ? [] : [[`${prefix}${field}${held.isList ? '[]' : ''}.`, held.shape]],
      ),
    );
  }
  return undefined;
}

interface KindProblem {
  /** Which of the two fields is wrong. */
  readonly field: 'kind' | 'apiVersion';
  /** `no matches for kind "Servce" in version "v1"; did you mean "Service"?` */
  readonly message: string;
}

/** Kinds of Kubernetes 1.36 besides those that Junction reads, so that a ServiceAccount is no misspelling. */
const OTHER_KINDS =
  `APIGroup APIService Binding CSIDriver CSINode CSIStorageCapacity CertificateSigningRequest ClusterRole
  ClusterRoleBinding ClusterTrustBundle ComponentStatus ConfigMap ControllerRevision CronJob CustomResourceDefinition DaemonSet
  DeleteOptions Deployment DeviceClass DeviceTaintRule Event Eviction FlowSchema HorizontalPodAutoscaler IPAddress Ingress
  IngressClass Job Lease LeaseCandidate LimitRange LocalSubjectAccessReview MutatingAdmissionPolicy
  MutatingAdmissionPolicyBinding MutatingWebhookConfiguration Namespace NetworkPolicy PersistentVolume PersistentVolumeClaim
  Pod PodCertificateRequest PodDisruptionBudget PodGroup PodTemplate PriorityClass PriorityLevelConfiguration ReplicaSet
  ReplicationController ResourceClaim ResourceClaimTemplate ResourcePoolStatusRequest ResourceQuota ResourceSlice Role
  RoleBinding RuntimeClass Scale Secret SelfSubjectAccessReview SelfSubjectReview SelfSubjectRulesReview ServiceAccount
  ServiceCIDR StatefulSet Status StorageClass StorageVersion StorageVersionMigration SubjectAccessReview TokenRequest
  TokenReview ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration VolumeAttachment
  VolumeAttributesClass WatchEvent Workload`.split(/\s+/);

/** Groups of Kubernetes itself whose names have a dot. Groups of custom resources always have one. */
const OWN_GROUPS: ReadonlySet<string> = new Set(
  `admissionregistration apiextensions apiregistration authentication authorization certificates coordination discovery
    events flowcontrol.apiserver internal.apiserver networking node rbac.authorization resource scheduling storage
    storagemigration`
    .split(/\s+/)
    .map((name) => `${name}.k8s.io`),
);

const READ: readonly string[] = ['List', ...KINDS, ...KINDS.map((kind) => `${kind}List`)];
const OTHERS: ReadonlySet<string> = new Set([...OTHER_KINDS, ...OTHER_KINDS.map((kind) => `${kind}List`)]);

/**
 * For an object that Junction does not read as it is: a kind that looks like a misspelling of one that it reads, or one in
 * a version that no server has. Other kinds are left alone: a directory of manifests has Deployments and custom resources too.
 */
export function kindProblem(kind: string, apiVersion: unknown): KindProblem | undefined {
  if (!isKubernetes(apiVersion)) return undefined;
  const meant = READ.includes(kind) ? kind : misspelled(kind);
  if (meant === undefined) return undefined;
  const version = apiVersion === undefined ? '' : ` in version ${quote(apiVersion)}`;
  const field = meant === kind ? 'apiVersion' : 'kind';
  const hint = field === 'kind' ? meant : versionOf(kind);
  return { field, message: `no matches for kind ${quote(kind)}${version}; did you mean "${hint}"?` };
}

export function versionOf(kind: string): string {
  const item = KINDS.find((known) => kind === known || kind === `${known}List`);
  return item === undefined ? 'v1' : apiVersionOf(item);
}

/** Knative has a Service, Longhorn a Node: another group's kinds are its own. */
function isKubernetes(apiVersion: unknown): boolean {
  const [group = ''] =
    typeof apiVersion === 'string' && apiVersion.includes('/') ? apiVersion.split('/') : [];
  return !group.includes('.') || OWN_GROUPS.has(group) || nearest(group, ['discovery.k8s.io']) !== undefined;
}

function misspelled(kind: string): string | undefined {
  if (OTHERS.has(kind)) return undefined;
  const meant = nearest(kind, [...READ, ...OTHERS]);
  return meant !== undefined && READ.includes(meant) ? meant : undefined;
}

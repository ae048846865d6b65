/**
 * Kubernetes' messages as Go writes them: field by field in the order of the numbers, and fields that have no pointer in
 * Go even where they are empty. The recordings in test/sources/api/protobuf hold it against the real bytes.
 */
export type Kind =
  | 'text'
  | 'int'
  | 'bool'
  | 'time'
  /** Texts by text, sorted. */
  | 'map'
  | 'intOrString'
  /** Managed fields: JSON as bytes. */
  | 'json'
  | readonly FieldRow[];

/** `always`: even where it is empty. `given`: where it is there. `each`: one field for each item of a list. */
export type Presence = 'always' | 'given' | 'each';

export type FieldRow = readonly [number: number, name: string, kind: Kind, presence: Presence];

const always = (number: number, name: string, kind: Kind = 'text'): FieldRow => [
  number,
  name,
  kind,
  'always',
];
const given = (number: number, name: string, kind: Kind = 'text'): FieldRow => [number, name, kind, 'given'];
const each = (number: number, name: string, kind: Kind = 'text'): FieldRow => [number, name, kind, 'each'];

const OWNER = [
  always(1, 'kind'),
  always(3, 'name'),
  always(4, 'uid'),
  always(5, 'apiVersion'),
  given(6, 'controller', 'bool'),
  given(7, 'blockOwnerDeletion', 'bool'),
];

const MANAGED_FIELDS = [
  always(1, 'manager'),
  always(2, 'operation'),
  always(3, 'apiVersion'),
  given(4, 'time', 'time'),
  always(6, 'fieldsType'),
  given(7, 'fieldsV1', 'json'),
  always(8, 'subresource'),
];

const OBJECT_META = [
  always(1, 'name'),
  always(2, 'generateName'),
  always(3, 'namespace'),
  always(4, 'selfLink'),
  always(5, 'uid'),
  always(6, 'resourceVersion'),
  always(7, 'generation', 'int'),
  always(8, 'creationTimestamp', 'time'),
  given(9, 'deletionTimestamp', 'time'),
  given(10, 'deletionGracePeriodSeconds', 'int'),
  given(11, 'labels', 'map'),
  given(12, 'annotations', 'map'),
  each(13, 'ownerReferences', OWNER),
  each(14, 'finalizers'),
  each(17, 'managedFields', MANAGED_FIELDS),
];

const CONDITION = [
  always(1, 'type'),
  always(2, 'status'),
  always(3, 'observedGeneration', 'int'),
  always(4, 'lastTransitionTime', 'time'),
  always(5, 'reason'),
  always(6, 'message'),
];

const SERVICE_PORT = [
  always(1, 'name'),
  always(2, 'protocol'),
  always(3, 'port', 'int'),
  always(4, 'targetPort', 'intOrString'),
  always(5, 'nodePort', 'int'),
  given(6, 'appProtocol'),
];

const SERVICE_SPEC = [
  each(1, 'ports', SERVICE_PORT),
  given(2, 'selector', 'map'),
  always(3, 'clusterIP'),
  always(4, 'type'),
  each(5, 'externalIPs'),
  always(7, 'sessionAffinity'),
  always(8, 'loadBalancerIP'),
  each(9, 'loadBalancerSourceRanges'),
  always(10, 'externalName'),
  always(11, 'externalTrafficPolicy'),
  always(12, 'healthCheckNodePort', 'int'),
  always(13, 'publishNotReadyAddresses', 'bool'),
  given(14, 'sessionAffinityConfig', [given(1, 'clientIP', [given(1, 'timeoutSeconds', 'int')])]),
  given(17, 'ipFamilyPolicy'),
  each(18, 'clusterIPs'),
  each(19, 'ipFamilies'),
  given(20, 'allocateLoadBalancerNodePorts', 'bool'),
  given(21, 'loadBalancerClass'),
  given(22, 'internalTrafficPolicy'),
  given(23, 'trafficDistribution'),
];

const INGRESS = [
  always(1, 'ip'),
  always(2, 'hostname'),
  given(3, 'ipMode'),
  each(4, 'ports', [always(1, 'port', 'int'), always(2, 'protocol'), given(3, 'error')]),
];

const SERVICE = [
  always(1, 'metadata', OBJECT_META),
  always(2, 'spec', SERVICE_SPEC),
  always(3, 'status', [
    always(1, 'loadBalancer', [each(1, 'ingress', INGRESS)]),
    each(2, 'conditions', CONDITION),
  ]),
];

const REFERENCE = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(
  (name, index) => always(index + 1, name),
);

const ENDPOINT = [
  each(1, 'addresses'),
  always(2, 'conditions', [
    given(1, 'ready', 'bool'),
    given(2, 'serving', 'bool'),
    given(3, 'terminating', 'bool'),
  ]),
  given(3, 'hostname'),
  given(4, 'targetRef', REFERENCE),
  given(5, 'deprecatedTopology', 'map'),
  given(6, 'nodeName'),
  given(7, 'zone'),
  given(8, 'hints', [each(1, 'forZones', [always(1, 'name')]), each(2, 'forNodes', [always(1, 'name')])]),
];

const ENDPOINT_SLICE = [
  always(1, 'metadata', OBJECT_META),
  each(2, 'endpoints', ENDPOINT),
  each(3, 'ports', [
    given(1, 'name'),
    given(2, 'protocol'),
    given(3, 'port', 'int'),
    given(4, 'appProtocol'),
  ]),
  always(4, 'addressType'),
];

const NODE_INFO = [
  'machineID',
  'systemUUID',
  'bootID',
  'kernelVersion',
  'osImage',
  'containerRuntimeVersion',
  'kubeletVersion',
  'kubeProxyVersion',
  'operatingSystem',
  'architecture',
].map((name, index) => always(index + 1, name));

const TAINT = [always(1, 'key'), always(2, 'value'), always(3, 'effect'), given(4, 'timeAdded', 'time')];

const NODE = [
  always(1, 'metadata', OBJECT_META),
  always(2, 'spec', [
    always(1, 'podCIDR'),
    always(2, 'externalID'),
    always(3, 'providerID'),
    always(4, 'unschedulable', 'bool'),
    each(5, 'taints', TAINT),
    each(7, 'podCIDRs'),
  ]),
  always(3, 'status', [
    always(3, 'phase'),
    each(5, 'addresses', [always(1, 'type'), always(2, 'address')]),
    always(6, 'daemonEndpoints', [always(1, 'kubeletEndpoint', [always(1, 'Port', 'int')])]),
    always(7, 'nodeInfo', NODE_INFO),
  ]),
];

const SERVICE_CIDR = [
  always(1, 'metadata', OBJECT_META),
  always(2, 'spec', [each(1, 'cidrs')]),
  always(3, 'status', [each(1, 'conditions', CONDITION)]),
];

const CAUSE = [always(1, 'reason'), always(2, 'message'), always(3, 'field')];

export const LIST_META = [
  always(1, 'selfLink'),
  always(2, 'resourceVersion'),
  always(3, 'continue'),
  given(4, 'remainingItemCount', 'int'),
];

const STATUS = [
  always(1, 'metadata', LIST_META),
  always(2, 'status'),
  always(3, 'message'),
  always(4, 'reason'),
  given(5, 'details', [
    always(1, 'name'),
    always(2, 'group'),
    always(3, 'kind'),
    each(4, 'causes', CAUSE),
    always(5, 'retryAfterSeconds', 'int'),
    always(6, 'uid'),
  ]),
  always(6, 'code', 'int'),
];

/** Kinds that the test API server has as protobuf. */
export const MESSAGES: Readonly<Record<string, readonly FieldRow[]>> = {
  Service: SERVICE,
  EndpointSlice: ENDPOINT_SLICE,
  Node: NODE,
  ServiceCIDR: SERVICE_CIDR,
  Status: STATUS,
};

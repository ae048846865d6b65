/**
 * Every field that Kubernetes 1.36 knows of the objects that Junction reads, used or not: what is not here is a mistake.
 *
 * `name:Shape` is a map with the fields of that shape, `name:Shape[]` a list of such maps. A field without a shape holds
 * a scalar, a list of scalars, or a map with any keys (labels, annotations, capacity, fieldsV1).
 */
import type { Kind } from '../../model/project/index.ts';

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
export interface Holds {
  readonly shape: Shape;
  readonly isList: boolean;
}

export type Shape = ReadonlyMap<string, Holds | undefined>;

const shapes = new Map<string, Shape>();

/** No shape holds itself, so this ends. */
function shapeNamed(name: keyof typeof SHAPES): Shape {
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
  return [name, { shape: shapeNamed((isList ? held.slice(0, -2) : held) as keyof typeof SHAPES), isList }];
}

export function shapeOf(kind: Kind | 'List'): Shape {
  return shapeNamed(kind);
}

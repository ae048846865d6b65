/**
 * Kinds that look like a misspelling of one that Junction reads, and kinds that it reads in a version that nobody serves.
 *
 * Other kinds are none of its business: a directory of manifests has Deployments and custom resources too.
 */
import { KINDS, apiVersionOf, quote } from '../../model/project/index.ts';
import { nearest } from '../../text/suggest.ts';

export interface KindProblem {
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

/** For an object that Junction does not read as it is. */
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

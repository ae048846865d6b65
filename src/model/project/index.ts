/** Raw Kubernetes objects → the checked, slim values of `../objects.ts`. Nothing here throws, whatever comes in. */
export { projectEndpoints, projectEndpointSlice } from './endpointSlice.ts';
export { apiVersionOf, KINDS, type ObjectKind, kindOf, nameOf } from './identity.ts';
export { projectNode } from './node.ts';
export { projectService } from './service.ts';

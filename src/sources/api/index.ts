export { ApiSource, type ApiSourceEvents, type ApiSourceOptions } from './apiSource.ts';
export {
  ApiClient,
  type ApiClientOptions,
  type ApiResponse,
  type JsonResponse,
  type Query,
  type RateLimit,
  type RequestOptions,
} from './client.ts';
export type { ApiAccess, Identity, PluginRunner } from './credentials/access.ts';
export { loadAccess, type LoadAccessOptions } from './credentials/load.ts';
export type { ApiDiagnostic, ListMethod, OnDiagnostic, ResourceDiagnostic } from './diagnostics.ts';
export { ApiFailure, type FailureKind } from './failure.ts';

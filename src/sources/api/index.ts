export { ApiSource, type ApiSourceEvents, type ApiSourceOptions } from './apiSource.ts';
export {
  ApiClient,
  type ApiClientOptions,
  type ApiResponse,
  type JsonResponse,
  type Query,
  type RequestOptions,
} from './client.ts';
export type { ApiAccess, Identity } from './credentials/access.ts';
export { loadAccess, type LoadAccessOptions } from './credentials/load.ts';
export type { PluginRunner } from './credentials/surroundings.ts';
export type { ApiDiagnostic, ListMethod, OnDiagnostic, ResourceDiagnostic } from './diagnostics.ts';
export { ApiFailure, type FailureKind } from './failure.ts';
export type { RateLimit } from './limiter.ts';

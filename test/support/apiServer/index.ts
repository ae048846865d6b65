export {
  type ApiServerOptions,
  type LoggedRequest,
  type StreamingLists,
  TestApiServer,
} from './apiServer.ts';
export { certificate, certificatePath, keyPath, privateKey } from './certs.ts';
export type { Fault, FaultRule, RequestKind } from './faults.ts';
export { type ClusterSize, generateCluster } from './generate.ts';
export { StatusError } from './status.ts';
export type { RawObject } from './store.ts';

/** What the API server of the benchmark is told, and what it tells. */
export interface ServerOptions {
  readonly services: number;
  readonly endpoints: number;
  readonly isDualStack: boolean;
  readonly certificates: string;
}

export interface Churn {
  readonly seconds: number;
  /** EndpointSlices a second. */
  readonly rate: number;
}

export type FromServer =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'churned'; readonly changes: number };
export type ToServer = { readonly kind: 'churn' } & Churn;

export const NODE_NAME = 'node-0.cluster.example';

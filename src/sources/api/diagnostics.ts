/** What happens between Junction and the API server. The caller decides on logs and metrics. */
import type { Encoding } from './encoding.ts';
import type { ApiFailure } from './failure.ts';

export type RequestMethod = 'GET' | 'POST' | 'PATCH';

/** What becomes `rest_client_*` metrics. */
type ClientDiagnostic =
  /** One HTTP request, when its headers have come or it has failed. */
  | {
      readonly kind: 'request';
      readonly method: RequestMethod;
      readonly host: string;
      /** `200`, or `<error>` when there was no answer. */
      readonly code: string;
      /** The same was asked before: the server wanted to be asked later, or other credentials. */
      readonly isRetry: boolean;
      /** How long our own rate limit held it back; a watch is not limited. */
      readonly limitedMs: number | undefined;
      /** Of its body; nothing for a watch. */
      readonly sentBytes: number | undefined;
    }
  /** A request that is no watch, with all its attempts, when its answer has been read or there is none. */
  | {
      readonly kind: 'answer';
      readonly method: RequestMethod;
      readonly host: string;
      readonly durationMs: number;
      /** Nothing where there was no answer, or it was cut off. */
      readonly receivedBytes: number | undefined;
    }
  /** New connections, with these certificates. */
  | { readonly kind: 'transport' };

/** stream: a watch that begins with every object. pages: lists of 500. */
export type ListMethod = 'stream' | 'pages';

/** What a list came to. */
export interface ListResult {
  readonly objects: number;
  readonly requests: number;
  readonly resourceVersion: string;
  /** Of the answers. */
  readonly encoding: Encoding;
}

/** What happens to a resource. */
export type ResourceDiagnostic = { readonly resource: string } & (
  | { readonly kind: 'listStarted'; readonly how: ListMethod }
  | ({ readonly kind: 'listEnded'; readonly how: ListMethod; readonly durationMs: number } & ListResult)
  /** A streaming list failed, and an ordinary one did not. */
  | { readonly kind: 'streamingRefused'; readonly failure: ApiFailure }
  | { readonly kind: 'watchStarted'; readonly resourceVersion: string; readonly encoding: Encoding }
  /** `failure`: nothing when the server ended it as agreed. */
  | {
      readonly kind: 'watchEnded';
      readonly events: number;
      readonly durationMs: number;
      readonly failure: ApiFailure | undefined;
    }
  | {
      readonly kind: 'backingOff';
      readonly delayMs: number;
      readonly next: 'list' | 'watch';
      readonly failure: ApiFailure;
    }
  /** The server does not serve an optional resource, or refuses it: it is taken as empty. */
  | { readonly kind: 'resourceAbsent'; readonly failure: ApiFailure }
);

export type ApiDiagnostic = ClientDiagnostic | ResourceDiagnostic;

export type OnDiagnostic = (diagnostic: ApiDiagnostic) => void;

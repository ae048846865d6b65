/** What happens between Junction and the API server. Whoever starts the source decides on logs and metrics. */
import type { ApiFailure } from './failure.ts';

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

export type RequestMethod = 'GET' | 'POST' | 'PATCH';

/** What happens to a resource. */
export type ResourceDiagnostic = Exclude<ApiDiagnostic, ClientDiagnostic>;

export type ApiDiagnostic =
  | ClientDiagnostic
  | { readonly kind: 'listStarted'; readonly resource: string; readonly how: ListMethod }
  | {
      readonly kind: 'listEnded';
      readonly resource: string;
      readonly how: ListMethod;
      readonly objects: number;
      readonly requests: number;
      readonly durationMs: number;
      readonly resourceVersion: string;
    }
  /** A streaming list failed, and an ordinary one did not. */
  | { readonly kind: 'streamingRefused'; readonly resource: string; readonly failure: ApiFailure }
  | { readonly kind: 'watchStarted'; readonly resource: string; readonly resourceVersion: string }
  | {
      readonly kind: 'watchEnded';
      readonly resource: string;
      readonly events: number;
      readonly durationMs: number;
      /** Nothing when the server ended it as agreed. */
      readonly failure: ApiFailure | undefined;
    }
  | {
      readonly kind: 'backingOff';
      readonly resource: string;
      readonly delayMs: number;
      readonly next: 'list' | 'watch';
      readonly failure: ApiFailure;
    }
  /** The server does not serve an optional resource, or refuses it: it is taken as empty. */
  | { readonly kind: 'resourceAbsent'; readonly resource: string; readonly failure: ApiFailure };

/** stream: a watch that begins with every object. pages: lists of 500. */
export type ListMethod = 'stream' | 'pages';

export type OnDiagnostic = (diagnostic: ApiDiagnostic) => void;

/** What happens between Junction and the API server. Whoever starts the source decides on logs and metrics. */
import type { ApiFailure } from './failure.ts';

export type ApiDiagnostic =
  /** One HTTP request, when its headers have come or it has failed; for `rest_client_*` metrics. */
  | {
      readonly kind: 'request';
      readonly method: 'GET' | 'POST' | 'PATCH';
      readonly host: string;
      /** `200`, or `<error>` when there was no answer. */
      readonly code: string;
      readonly durationMs: number;
      /** How long our own rate limit held it back. */
      readonly limitedMs: number;
    }
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

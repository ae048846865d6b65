/** Put in place by the build; absent where the source runs as it is. */
declare const JUNCTION_BUILD: { readonly commit: string; readonly date: string } | undefined;

export const VERSION = '0.2.0';

/** The release of Kubernetes whose kube-proxy Junction takes the place of. */
export const KUBERNETES_VERSION = '1.36.4';

/** Of which source it was built, and when. */
export const BUILD: { readonly commit: string; readonly date: string } =
  typeof JUNCTION_BUILD === 'undefined' ? { commit: 'unknown', date: 'unknown' } : JUNCTION_BUILD;

/** The machine that has what the benchmark needs. Apart, because it is with the tests, which an image lacks. */
export { runInGuest, whyNoGuest } from '../../test/support/uml/guest.ts';

/** The frame around every view: where one can go, and whether what is shown is true now. */
import { useEffect, useErrorBoundary, useRef } from 'preact/hooks';
import type { Status } from '../../src/explain/status.ts';
import { placeOf, type Route, titleOf } from './address.ts';
import { type ApiFailure, keepToken } from './api.ts';
import { live } from './live.ts';
import { LiveBadge, StaleNotice, useLive } from './parts/liveBadge.tsx';
import { Failed } from './parts/states.tsx';
import { openLinksHere, useRoute } from './route.ts';
import { useAnswer } from './useAnswer.ts';
import { NodeView } from './views/node.tsx';
import { PacketView } from './views/packet.tsx';
import { ServiceView } from './views/service.tsx';
import { ServicesView } from './views/services.tsx';
import { SyncsView } from './views/syncs.tsx';

keepToken();
live.start();

const PLACES = [
  ['/services', 'Services', ['services', 'service']],
  ['/packet', 'Packet', ['packet']],
  ['/syncs', 'Syncs', ['syncs']],
  ['/node', 'Node', ['node']],
] as const;

export function App() {
  const route = useRoute();
  const state = useLive();
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  const [failure, reset] = useErrorBoundary();
  useEffect(() => {
    document.title = `${titleOf(route)} – Junction`;
    // Who cannot see that the view changed hears it, and goes on from its beginning.
    const isInside = main.current?.contains(document.activeElement) ?? false;
    if (!isFirst.current && !isInside) main.current?.focus({ preventScroll: true });
    isFirst.current = false;
    reset();
  }, [placeOf(route)]);
  return (
    <div class="frame" onClick={openLinksHere}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Top view={route.view} />
      <StaleNotice state={state} />
      <main id="main" ref={main} tabIndex={-1}>
        {state.kind === 'denied' ? (
          <Denied failure={state.failure} />
        ) : failure === undefined ? (
          <View route={route} />
        ) : (
          <Broken failure={failure} reset={reset} />
        )}
      </main>
    </div>
  );
}

function Top({ view }: { readonly view: Route['view'] }) {
  const state = useLive();
  // The node and the mode stay what they are as long as the proxy runs.
  const answer = useAnswer<Status>('/v1/status');
  const status = answer.kind === 'here' ? answer.value : undefined;
  return (
    <header class="top">
      <a class="brand" href="/services">
        <img src="/icon.svg" alt="" width="22" height="22" />
        <span class="brand-name">Junction</span>
      </a>
      {status && (
        <p class="where">
          <span class="visually-hidden">node </span>
          <strong>{status.node}</strong>
          <span class="mode">{status.mode}</span>
          {status.answeredBy?.kind === 'plan' && (
            <span class="badge" title="A plan that is written nowhere">
              planned
            </span>
          )}
        </p>
      )}
      <nav aria-label="Views">
        {PLACES.map(([href, title, views]) => (
          <a key={href} href={href} {...(includes(views, view) && { 'aria-current': 'page' as const })}>
            {title}
          </a>
        ))}
      </nav>
      <div class="top-end">
        <div role="status">
          <LiveBadge state={state} node={status?.node} takenAt={takenAt(status)} />
        </div>
      </div>
    </header>
  );
}

/** Of a recording. */
function takenAt(status: Status | undefined): number | undefined {
  return status?.answeredBy?.kind === 'bundle' ? status.answeredBy.takenAt : status?.now;
}

function includes(views: readonly string[], view: string): boolean {
  return views.includes(view);
}

function View({ route }: { readonly route: Route }) {
  switch (route.view) {
    case 'services':
      return <ServicesView query={route.query} />;
    case 'service':
      return <ServiceView key={route.service} service={route.service} query={route.query} />;
    case 'packet':
      return <PacketView query={route.query} />;
    case 'syncs':
      return <SyncsView query={route.query} />;
    case 'node':
      return <NodeView query={route.query} />;
    case 'unknown':
      return (
        <section class="state">
          <h1>There is nothing at this address</h1>
          <p>
            <a href="/services">All services</a>
          </p>
        </section>
      );
  }
}

function Denied({ failure }: { readonly failure: ApiFailure }) {
  return (
    <>
      <h1 class="visually-hidden">Junction</h1>
      <Failed what="this page" failure={failure} />
    </>
  );
}

function Broken({ failure, reset }: { readonly failure: unknown; readonly reset: () => void }) {
  return (
    <section class="state state-error" role="alert">
      <h1>This view failed</h1>
      <p>{failure instanceof Error ? failure.message : String(failure)}</p>
      <button type="button" onClick={reset}>
        Try again
      </button>
    </section>
  );
}

/** The frame around every view: where one can go, and whether what is shown is true now. */
import { useEffect, useErrorBoundary, useRef } from 'preact/hooks';
import { keepToken } from './api.ts';
import { live } from './live.ts';
import { LiveBadge } from './parts/liveBadge.tsx';
import { ThemeChoice } from './parts/themeChoice.tsx';
import { openLinksHere, type Route, useRoute } from './route.ts';
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
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  const [failure, reset] = useErrorBoundary();
  const place = route.view === 'service' ? `service ${route.service}` : route.view;
  useEffect(() => {
    document.title = `${titleOf(route)} – Junction`;
    // Who cannot see that the view changed hears it, and goes on from its beginning.
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
    reset();
  }, [place]);
  return (
    <div class="frame" onClick={openLinksHere}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="/services">
          <img src="/icon.svg" alt="" width="22" height="22" />
          Junction
        </a>
        <nav aria-label="Views">
          {PLACES.map(([href, title, views]) => (
            <a
              key={href}
              href={href}
              {...(includes(views, route.view) && { 'aria-current': 'page' as const })}
            >
              {title}
            </a>
          ))}
        </nav>
        <div class="top-end">
          <LiveBadge />
          <ThemeChoice />
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {failure === undefined ? <View route={route} /> : <Broken failure={failure} reset={reset} />}
      </main>
    </div>
  );
}

function includes(views: readonly string[], view: string): boolean {
  return views.includes(view);
}

function titleOf(route: Route): string {
  switch (route.view) {
    case 'service':
      return route.service;
    case 'unknown':
      return 'Not found';
    default:
      return route.view[0]?.toUpperCase() + route.view.slice(1);
  }
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

import { servicePath } from '../route.ts';

/** A sentence, with the name of a service in it as a link. */
export function ServiceWords({
  text,
  service,
  tabIndex = 0,
}: {
  readonly text: string;
  readonly service: string | undefined;
  readonly tabIndex?: number;
}) {
  const start = service === undefined ? -1 : text.indexOf(service);
  if (service === undefined || start < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, start)}
      <a href={servicePath(service)} tabIndex={tabIndex}>
        {service}
      </a>
      {text.slice(start + service.length)}
    </>
  );
}

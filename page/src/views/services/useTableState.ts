import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { go, replaceSoon } from '../../route.ts';
import { parseTableState, printTableState, type TableState } from './viewState.ts';

type Choose = (state: TableState, how: 'push' | 'soon') => void;

/** What is chosen, and in the address: at once for the eye, and for the address where one types after a pause. */
export function useTableState(query: URLSearchParams): readonly [TableState, Choose] {
  const [state, setState] = useState(() => parseTableState(query));
  const address = useRef(printTableState(state));
  // Before the next key: what it chooses is not taken back by the address of the choice before it.
  useLayoutEffect(() => {
    const next = parseTableState(query);
    const text = printTableState(next);
    if (text === address.current) return;
    address.current = text;
    setState(next);
  }, [query]);
  const choose: Choose = (next, how) => {
    address.current = printTableState(next);
    setState(next);
    if (how === 'push') go(address.current);
    else replaceSoon(address.current);
  };
  return [state, choose];
}

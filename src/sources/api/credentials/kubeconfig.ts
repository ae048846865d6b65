/** Which cluster and user a kubeconfig's current context means. */
import { dirname, isAbsolute, join } from 'node:path';
import { JunctionError } from '../../../errors.ts';
import { isMap, ownField } from '../../../model/project/cursor.ts';
import { quote } from '../../../model/project/quote.ts';
import { MOST_USES, parseYaml, survey } from '../../../text/yaml.ts';
import { explainFileError } from './explain.ts';
import { Section } from './section.ts';
import type { Surroundings } from './surroundings.ts';

export interface CurrentContext {
  /** `kubeconfig /etc/junction.conf, context "prod"` */
  readonly origin: string;
  readonly cluster: Section;
  readonly user: Section;
  /** Paths in a kubeconfig are relative to its directory. */
  readonly resolve: (path: string) => string;
}

const PATH_HINT = 'Give the path of a kubeconfig that exists (--kubeconfig, or clientConnection.kubeconfig).';
const TILDE_HINT =
  'A shell replaces ~ only at the beginning of a word, and never in a file: --kubeconfig ~/.kube/config or --kubeconfig="$HOME/.kube/config".';
const NO_CONTEXT_HINT =
  'It has no contexts at all: is it the file that you mean? One that `kubectl config view --kubeconfig FILE` shows with a cluster and a user will do.';
const NONE = 'none';

/** With a server given otherwise (`--master`), a kubeconfig need not name a cluster. */
export async function readKubeconfig(
  path: string,
  needsCluster: boolean,
  { readFile }: Surroundings,
): Promise<CurrentContext> {
  const where = `kubeconfig ${path}`;
  let text: string;
  try {
    text = await readFile(path);
  } catch (error) {
    throw new JunctionError('KUBECONFIG_INVALID', `${where}: ${explainFileError(error)}`, {
      cause: error,
      hint: path.startsWith('~') ? TILDE_HINT : PATH_HINT,
    });
  }
  const root = new Section(where, readYaml(text, where));
  const name = root.text('current-context');
  const resolve = (file: string): string => (isAbsolute(file) ? file : join(dirname(path), file));
  if (name === '') {
    if (!needsCluster) return { origin: where, cluster: empty(where), user: empty(where), resolve };
    const names = namesOf(root, 'contexts');
    const hint =
      names === NONE ? NO_CONTEXT_HINT : `Choose one with \`kubectl config use-context\`: ${names}.`;
    throw root.bad('current-context', 'is not set', hint);
  }
  const context = named(root, 'contexts', 'context', name, 'current-context');
  const clusterName = context.text('cluster');
  const userName = context.text('user');
  if (clusterName === '' && needsCluster) throw context.bad('cluster', 'is not set');
  return {
    origin: context.where,
    cluster:
      clusterName === '' ? empty(where) : named(root, 'clusters', 'cluster', clusterName, context.where),
    // A context without a user is somebody anonymous.
    user: userName === '' ? empty(where) : named(root, 'users', 'user', userName, context.where),
    resolve,
  };
}

function readYaml(text: string, where: string): unknown {
  const bad = (offset: number, message: string): JunctionError => {
    const line = text.slice(0, offset).split('\n').length;
    return new JunctionError('KUBECONFIG_INVALID', `${where}:${line}: ${message}`);
  };
  const yaml = parseYaml(text);
  if ('message' in yaml) throw bad(yaml.offset, yaml.message);
  const [document] = yaml.documents;
  if (document === undefined) return null;
  const [error] = document.errors;
  // The parser's own message would show the line, and with it perhaps a token.
  if (error !== undefined) throw bad(error.pos[0], `it is not YAML (${error.code})`);
  const surveyed = survey(document);
  if ('message' in surveyed) throw bad(surveyed.offset, surveyed.message);
  const [repeated] = surveyed.repeatedKeys;
  if (repeated !== undefined) throw bad(repeated.offset, 'it is not YAML (DUPLICATE_KEY)');
  return document.toJS({ maxAliasCount: MOST_USES }) as unknown;
}

function empty(where: string): Section {
  return new Section(where, {});
}

/** The entry of `clusters`, `users` or `contexts` with this name. */
function named(root: Section, listName: string, field: string, name: string, wantedBy: string): Section {
  const entry = root.list(listName).find((each) => isMap(each) && ownField(each, 'name') === name);
  if (entry === undefined) {
    const hint = `It has: ${namesOf(root, listName)}.`;
    throw root.bad(listName, `has no ${field} ${quote(name)}, which ${wantedBy} names`, hint);
  }
  return new Section(`${root.where}, ${field} ${quote(name)}`, ownField(entry, field));
}

function namesOf(root: Section, listName: string): string {
  const names = root.list(listName).flatMap((each) => {
    const name = ownField(each, 'name');
    return typeof name === 'string' ? quote(name) : [];
  });
  return names.length === 0 ? NONE : names.join(', ');
}

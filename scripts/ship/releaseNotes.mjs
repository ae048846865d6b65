/** What CHANGELOG.md says of one version. */
import { Failure } from '../support/run.mjs';

/** `## [0.2.0] - 2026-11-16`, and all until the next of its kind. */
export function notesOf(changelog, version) {
  const lines = changelog.split('\n');
  const heading = new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\] - \\d{4}-\\d{2}-\\d{2}$`);
  const first = lines.findIndex((line) => heading.test(line));
  if (first < 0) {
    throw new Failure(
      `CHANGELOG.md has no section for ${version}. Give "## [Unreleased]" its name: ## [${version}] - YYYY-MM-DD`,
    );
  }
  const rest = lines.slice(first + 1);
  const next = rest.findIndex((line) => /^## |^\[[^\]]+\]: /.test(line));
  const notes = rest
    .slice(0, next < 0 ? undefined : next)
    .join('\n')
    .trim();
  if (notes === '') throw new Failure(`CHANGELOG.md says nothing of ${version}: its section is empty.`);
  return `# Junction ${version}\n\n${notes}\n`;
}

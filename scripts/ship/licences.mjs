/** The licences of what the program contains, as one text. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const RULE = '-'.repeat(80);

/** `folders`: of packages, as npm installed them. */
export async function thirdPartyLicences(folders) {
  const texts = await Promise.all(folders.map(licenceOf));
  return `Junction contains these packages.\n\n${texts.join('\n')}`;
}

async function licenceOf(folder) {
  const { name, version, license, homepage } = JSON.parse(
    await readFile(join(folder, 'package.json'), 'utf8'),
  );
  const file = (await readdir(folder)).find((each) => /^licen[cs]e(?:\.|$)/i.test(each));
  if (file === undefined) throw new Error(`${name}@${version} has no licence file`);
  const text = (await readFile(join(folder, file), 'utf8')).replaceAll('\r\n', '\n').trim();
  return `${RULE}\n${name} ${version} (${license})${homepage ? `, ${homepage}` : ''}\n${RULE}\n\n${text}\n`;
}

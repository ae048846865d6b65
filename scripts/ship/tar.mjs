/**
 * Tar archives in POSIX's ustar format, the same bytes for the same entries: sorted, owned by root, with one date. GNU tar's
 * output depends on its version and on the file system.
 *
 * An entry is `{ path, type: 'file' | 'folder' | 'symlink', mode, data, target }`; `path` has no slash at either end.
 */
const BLOCK = 512;
const TYPES = { file: '0', symlink: '2', folder: '5' };
const MODES = { file: 0o644, symlink: 0o777, folder: 0o755 };
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;

/** Pieces of the archive, in order. Folders that entries are in, and that nobody lists, are added. */
export function* writeTar(entries, { mtime }) {
  for (const entry of withFolders(entries)) {
    const data = entry.data ?? Buffer.alloc(0);
    yield header(entry, data.length, mtime);
    yield data;
    yield Buffer.alloc(-data.length & (BLOCK - 1));
  }
  yield Buffer.alloc(2 * BLOCK);
}

function withFolders(entries) {
  const byPath = new Map();
  for (const entry of entries) {
    if (byPath.has(entry.path) && entry.type !== 'folder')
      throw new Error(`two entries for ${entry.path} in one archive`);
    byPath.set(entry.path, entry);
    for (let at = entry.path.lastIndexOf('/'); at > 0; at = entry.path.lastIndexOf('/', at - 1)) {
      const path = entry.path.slice(0, at);
      if (!byPath.has(path)) byPath.set(path, { path, type: 'folder' });
    }
  }
  const order = (path) => Buffer.from(path.replaceAll('/', '\0'));
  return [...byPath.values()].sort((a, b) => Buffer.compare(order(a.path), order(b.path)));
}

function header({ path, type, mode = MODES[type], target = '' }, size, mtime) {
  const block = Buffer.alloc(BLOCK);
  const { name, prefix } = split(type === 'folder' ? `${path}/` : path);
  if (Buffer.byteLength(target) > NAME_BYTES) throw new Error(`the target of ${path} is too long for ustar`);
  block.write(name, 0);
  writeOctal(block, mode, 100, 8);
  writeOctal(block, 0, 108, 8); // owner
  writeOctal(block, 0, 116, 8); // group
  writeOctal(block, size, 124, 12);
  writeOctal(block, mtime, 136, 12);
  block.fill(' ', 148, 156); // the checksum, while it is computed
  block.write(TYPES[type], 156);
  block.write(target, 157);
  block.write('ustar\x0000', 257, 'latin1');
  block.write(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

function split(path) {
  if (Buffer.byteLength(path) <= NAME_BYTES) return { name: path, prefix: '' };
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (name !== '' && Buffer.byteLength(name) <= NAME_BYTES && Buffer.byteLength(prefix) <= PREFIX_BYTES)
      return { name, prefix };
  }
  throw new Error(`${path} is too long for ustar`);
}

function writeOctal(block, value, at, length) {
  block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1');
}

/** The files, folders and symbolic links of an archive, as ustar, GNU and pax write it. Hard links become files. */
export function* readTar(archive) {
  const files = new Map();
  let long = {};
  for (let at = 0; at + BLOCK <= archive.length; ) {
    const block = archive.subarray(at, at + BLOCK);
    if (block.every((byte) => byte === 0)) return;
    const size = octalAt(block, 124, 12);
    const data = archive.subarray(at + BLOCK, at + BLOCK + size);
    if (data.length < size) throw new Error('the archive ends in the middle of a file');
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    const type = String.fromCharCode(block[156]);
    if (type === 'L' || type === 'K') {
      long[type === 'L' ? 'path' : 'linkpath'] = textOf(data);
    } else if (type === 'x') {
      long = { ...long, ...paxOf(data) };
    } else if (type !== 'g') {
      const entry = entryOf(type, block, data, long, files);
      long = {};
      if (entry) yield entry;
    }
  }
}

function entryOf(type, block, data, long, files) {
  const prefix = block.toString('latin1', 257, 263) === 'ustar\0' ? textOf(block.subarray(345, 500)) : '';
  const short = textOf(block.subarray(0, 100));
  const path = plain(long.path ?? (prefix ? `${prefix}/${short}` : short));
  const target = long.linkpath ?? textOf(block.subarray(157, 257));
  const mode = octalAt(block, 100, 8) & 0o7777;
  if (type === '5') return { path, type: 'folder', mode };
  if (type === '2') return { path, type: 'symlink', target };
  const isHardLink = type === '1';
  if (!isHardLink && type !== '0' && type !== '\0') return undefined; // devices and pipes
  const content = isHardLink ? files.get(plain(target)) : data;
  if (content === undefined)
    throw new Error(`${path} is a link to ${target}, which the archive does not have`);
  files.set(path, content);
  return { path, type: 'file', mode, data: content };
}

function paxOf(data) {
  const records = {};
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(' ', at);
    const length = Number(data.toString('latin1', at, space));
    const [name, ...value] = data.toString('utf8', space + 1, at + length - 1).split('=');
    records[name] = value.join('=');
    at += length;
  }
  return records;
}

function plain(path) {
  return path.replace(/^(\.?\/)+/, '').replace(/\/+$/, '');
}

function textOf(bytes) {
  const end = bytes.indexOf(0);
  return bytes.toString('utf8', 0, end < 0 ? bytes.length : end);
}

function octalAt(block, at, length) {
  return Number.parseInt(textOf(block.subarray(at, at + length)).trim() || '0', 8);
}

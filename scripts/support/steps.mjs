/**
 * Progress: one line per step. On a terminal the line turns, counts the seconds and ends in a tick; elsewhere there is
 * one line when the step begins, one now and then, and one when it ends.
 */
const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const TURN_MS = 80;
const STILL_AT_IT_MS = 15_000;

const isTerminal = process.stdout.isTTY && process.env.TERM !== 'dumb';
const hasColour = isTerminal && !process.env.NO_COLOR;
/** For the mark, the seconds and the spaces around. */
const MARGIN = 12;

/** Runs the work, which may hand an amended label to `say`, and passes its result or its error on. */
export async function step(label, work) {
  const begun = performance.now();
  const line = isTerminal ? turningLine(label, begun) : plainLine(label, begun);
  try {
    const result = await work(line.say);
    line.end(colour(32, '✓'));
    return result;
  } catch (error) {
    line.end(colour(31, '✗'));
    throw error;
  }
}

function turningLine(label, begun) {
  let frame = 0;
  let text = label;
  const draw = () => {
    frame = (frame + 1) % FRAMES.length;
    process.stdout.write(
      `\r\u001b[K${colour(36, FRAMES[frame])} ${fitting(text)} ${colour(2, `${seconds(begun, 0)} s`)}`,
    );
  };
  const timer = setInterval(draw, TURN_MS);
  draw();
  return {
    say: (amended) => {
      text = amended;
    },
    end: (mark) => {
      clearInterval(timer);
      process.stdout.write(`\r\u001b[K${mark} ${label} ${colour(2, `${seconds(begun, 1)} s`)}\n`);
    },
  };
}

function plainLine(label, begun) {
  let text = label;
  const timer = setInterval(() => console.log(`  ${text} … ${seconds(begun, 0)} s`), STILL_AT_IT_MS);
  console.log(`  ${label} …`);
  return {
    say: (amended) => {
      text = amended;
    },
    end: (mark) => {
      clearInterval(timer);
      console.log(`${mark} ${label} (${seconds(begun, 1)} s)`);
    },
  };
}

/** A line that wraps cannot be drawn over. */
function fitting(text) {
  const room = Math.max(10, (process.stdout.columns ?? 80) - MARGIN);
  return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
}

function seconds(begun, digits) {
  return ((performance.now() - begun) / 1000).toFixed(digits);
}

function colour(code, text) {
  return hasColour ? `\u001b[${code}m${text}\u001b[0m` : text;
}

/** One tab on the page, and everything in it that must not be: errors, requests that leave the proxy, refused resources. */
import type { BrowserContext, Locator, Page, Request } from 'playwright-core';

export interface TabOptions {
  /** Unset: of the page of the running proxy. */
  readonly origin?: string;
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: 'light' | 'dark';
  /** Console errors that the test itself causes: a proxy that was ended answers nothing. */
  readonly expected?: RegExp;
}

/** More than ten times what the slowest view takes on a quiet machine. */
const LIMIT_MS = 150_000;

export class Tab {
  readonly page: Page;
  readonly problems: string[] = [];
  /** Paths that were asked for, in order. */
  readonly asked: string[] = [];
  readonly #origin: string;

  static async open(
    context: BrowserContext,
    options: TabOptions & { readonly origin: string },
  ): Promise<Tab> {
    const { origin, width = 1280, height = 800, scheme = 'light', expected } = options;
    const page = await context.newPage();
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
    page.setDefaultTimeout(LIMIT_MS);
    return new Tab(page, origin, expected);
  }

  private constructor(page: Page, origin: string, expected: RegExp | undefined) {
    this.#origin = origin;
    this.page = page;
    page.on('pageerror', ({ message }) => this.problems.push(`error: ${message}`));
    // Chromium says here too what the content security policy refused, and what could not be loaded.
    page.on('console', (message) => {
      if (message.type() === 'error' && !expected?.test(message.text()))
        this.problems.push(`console: ${message.text()} ${message.location().url}`);
    });
    page.on('request', (request) => this.#note(request));
  }

  #note(request: Request): void {
    const url = new URL(request.url());
    this.asked.push(url.pathname + url.search);
    if (url.origin !== this.#origin) this.problems.push(`request beyond the proxy: ${request.url()}`);
  }

  async goTo(path: string): Promise<void> {
    await this.page.goto(this.#origin + path);
    await this.isShown();
  }

  /** The view's answer is here, or what stands in its place. */
  async isShown(): Promise<void> {
    await this.page.locator('main h1').first().waitFor();
    await this.page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
  }

  /** The address without the origin. */
  get address(): string {
    return this.page.url().slice(this.#origin.length);
  }

  main(): Locator {
    return this.page.locator('main');
  }

  /** What a person reads, with single spaces. */
  async text(selector = 'main'): Promise<string> {
    return (await this.page.locator(selector).innerText()).replace(/\s+/g, ' ');
  }

  async says(text: string | RegExp): Promise<void> {
    await this.main().getByText(text).first().waitFor();
  }

  /** A script, because tests know no types of a browser. */
  evaluate<T>(script: string): Promise<T> {
    return this.page.evaluate<T>(script);
  }

  async close(): Promise<void> {
    await this.page.close();
  }
}

import { type ComponentType, createElement } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ProblemNote } from "../parts/problemnote";
import { problemOf } from "../api/problem";
import { Spinner } from "../parts/spinner";

/** A component whose code loads when it is first drawn. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const [, draw] = useState(0);
    const [failure, setFailure] = useState<unknown>(null);
    useEffect(() => {
      let here = true;
      if (!loaded) {
        load().then(
          (found) => {
            loaded = found;
            if (here) draw(1);
          },
          (thrown: unknown) => {
            if (here) setFailure(thrown);
          },
        );
      }
      return () => {
        here = false;
      };
    }, []);
    if (failure) return <ProblemNote problem={problemOf(failure)} />;
    return loaded ? createElement(loaded, props) : <Spinner label="Loading" />;
  };
}

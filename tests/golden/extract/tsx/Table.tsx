import React, { type ReactNode } from "react";
import { Row } from "./Row";

const lazy = React.lazy(() => import("./Heavy"));

export interface TableProps<T> extends React.HTMLAttributes<HTMLTableElement> {
  rows: readonly T[];
  render(row: T): ReactNode;
}

type State = { open: boolean };

/* XXX: measure first; 10,000 rows are slow — größer noch */
export function Table<T extends { id: string }>({ rows, render, ...rest }: TableProps<T>): JSX.Element {
  const toggle = (id: string) => id;
  return (
    <table {...rest}>
      {/* FIXME: keys clash */}
      {rows.map((row) => <Row<T> key={row.id} onOpen={toggle}>{render(row)}</Row>)}
      <UI.Footer />
    </table>
  );
}

export class Panel extends React.Component<TableProps<string>, State> {
  state: State = { open: false };

  render() {
    return <Table rows={[]} render={this.props.render} />;
  }
}

export const Badge = React.memo(function Badge({ text = "new" }: { text?: string }) {
  return <b>{text}</b>;
});

export default React.forwardRef<HTMLElement, TableProps<string>>((props, ref) => null);

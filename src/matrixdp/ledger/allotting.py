"""Allowances in a ledger: set apart, and returned."""

from __future__ import annotations

from fractions import Fraction

from matrixdp.errors import LedgerError
from matrixdp.ledger.accounting import NOTHING, Reserve
from matrixdp.ledger.allowance import AllowanceBalance, AllowanceSize
from matrixdp.ledger.entry_content import amount_to_json, sums_to_json
from matrixdp.ledger.request import check_name
from matrixdp.ledger.values import Allowance
from matrixdp.ledger.writing import LedgerWriter


class LedgerAllotter(LedgerWriter):
    """The methods of `Ledger` that divide a data set's total."""

    def allow(
        self,
        dataset: str,
        name: str,
        *,
        epsilon: float | None = None,
        share: float | Fraction | str | None = None,
        reserve: Reserve | None = None,
    ) -> Allowance:
        """Set a part of a data set's total apart, which only charges that name it can spend.

        Setting it apart again with the same size changes nothing; another size raises a `LedgerError`.

        Parameters
        ----------
        dataset : str
        name : str
            Of the allowance: a person, a team, a project. A name that was returned cannot be used again.
        epsilon : float, optional
            The size, either as an epsilon at the data set's delta or as a `share`.
        share : float, Fraction or str, optional
            The size as a share of the total, such as 0.25 or ``"1/3"``; it includes that share of the reserve. A float
            counts as the decimal number that it prints as, so that ten shares of 0.1 are the whole.
        reserve : Reserve, optional
            The part of `epsilon` and delta that is for events that are not Gaussian. Empty by default.

        Raises
        ------
        BudgetExceededError
            If the size is more than what is neither spent nor allotted.

        Privacy
        -------
        What charges to the allowance add to all other releases is (epsilon, delta)-DP, at the data set's delta.
        ``docs/composition.md`` has the proof.

        Examples
        --------
        >>> import tempfile
        >>> from matrixdp import Ledger, Privacy
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.create(folder.name + "/clinic.db")
        >>> _ = ledger.register("clinic", Privacy(epsilon=4, delta=1e-6), neighbours="replace")
        >>> round(ledger.allow("clinic", "ann", share=0.5).epsilon, 4), round(ledger.remaining("clinic").epsilon, 4)
        (2.7176, 2.7176)
        >>> ledger.close()
        >>> folder.cleanup()
        """
        wanted = AllowanceSize(epsilon, share, reserve)
        check_name(name, "name")
        with self._writing() as journal:
            balance = journal.balance(dataset)
            size, guarantee = wanted.amount(balance.total, balance.registration.privacy)
            if journal.row("allowance", dataset, name) is None:
                journal.require_settled(dataset)
                allowance = AllowanceBalance(name, size, NOTHING, guarantee)
                balance = balance.allot(allowance, self._store.location)
                content = {"size": amount_to_json(size), "epsilon": guarantee, **sums_to_json(balance)}
                journal.append("allowance", content, dataset=dataset, allowance=name)
            else:
                allowance = journal.allowance(dataset, name)
                if allowance.returned:
                    raise LedgerError(f"the allowance {name!r} of {dataset!r} was returned. Choose another name.")
                if allowance.size != size:
                    raise LedgerError(
                        f"{dataset!r} has an allowance {name!r} of another size, which cannot be changed. "
                        "Choose another name, or return it first."
                    )
        return balance.describe(allowance)

    def return_allowance(self, dataset: str, name: str) -> Allowance:
        """Return what is left of an allowance to its data set. Nothing can be charged to it afterwards.

        What was charged to it stays spent. Returning it again changes nothing.
        """
        with self._writing() as journal:
            balance, allowance = journal.balance(dataset), journal.allowance(dataset, name)
            if not allowance.returned:
                balance = balance.take_back(allowance)
                content = {"returned": amount_to_json(allowance.unspent), **sums_to_json(balance)}
                journal.append("return", content, dataset=dataset, allowance=name)
                allowance = journal.allowance(dataset, name)
        return balance.describe(allowance)
